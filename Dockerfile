# foxrun in an image: trainer, gate, compare, report, alert. docs/image.md says what is in it and how to build it:
#   docker build --build-arg TREE="$(git rev-parse 'HEAD^{tree}')" -t REGISTRY/foxrun:"$(git rev-parse HEAD)" .
# TORCH is cpu, cuda or none (compare, report and alert need no torch). TORCH_INDEX is where torch's own wheels lie,
# empty for pip's ordinary index. TREE is the git tree that is being built: manifests name it as the code that ran, and SHA
# as its commit, by which a night that asks for a branch is told of.
ARG BASE=python:3.11-slim

# What is to be installed, as a file of its own: other lines of pyproject.toml may change without a new installation.
FROM ${BASE} AS requirements
COPY pyproject.toml /
RUN python -c "import tomllib; print(*tomllib.load(open('/pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
      | sort > /all.txt && grep '^torch\b' /all.txt > /torch.txt && grep -v '^torch\b' /all.txt > /tools.txt
# Here, so that it is said at once.
ARG TREE
RUN echo "${TREE}" | grep -Eqx '[0-9a-f]{40}|[0-9a-f]{64}' || { \
      echo "TREE=${TREE}: give the tree that is built, --build-arg TREE=\$(git rev-parse 'HEAD^{tree}')" >&2; exit 2; }

# One layer that later stages stand on and nobody copies: installed, less what no command of ours reads (tests, C++ headers,
# programs for building extensions), with bytecode that is believed without a look at its source, so that a read-only
# root costs no start-up time. pip stays outside of what is installed: nothing is added in a running image.
# torch comes first and without its dependencies, so that its index is asked for nothing else; they follow from pip's.
# One file of torch's own tests is for Python 3.12 alone.
FROM ${BASE} AS libraries
ARG TORCH=cpu
ARG TORCH_INDEX=https://download.pytorch.org/whl
ARG CUDA=cu130
COPY constraints.txt /opt/
COPY --from=requirements /torch.txt /tools.txt /opt/
RUN set -e; cd /opt; python -m venv --without-pip foxrun; \
    pip="python -m pip --python /opt/foxrun/bin/python install --no-cache-dir --no-compile -c constraints.txt"; \
    case "$TORCH" in \
      none) ;; \
      cpu | cuda) \
        place=cpu; [ "$TORCH" = cpu ] || place=$CUDA; \
        $pip --no-deps ${TORCH_INDEX:+--index-url "$TORCH_INDEX/$place"} -r torch.txt; \
        cat torch.txt >> tools.txt;; \
      *) echo "TORCH=$TORCH: cpu, cuda or none" >&2; exit 2;; \
    esac; \
    $pip -r tools.txt; \
    foxrun/bin/python -c "import importlib.util as u, sys; wanted = sys.argv[1]; has = 'none'; \
exec('if u.find_spec(\"torch\"):\n  import torch\n  has = \"cuda\" if torch.version.cuda else \"cpu\"'); \
sys.exit(has != wanted and f'torch is for {has}, not {wanted}: check TORCH_INDEX')" "$TORCH"; \
    cd foxrun/lib/python3*/site-packages; \
    find . -depth -name __pycache__ -exec rm -r {} +; \
    find . -depth -type d -name tests -not -path './torch/*' -exec rm -r {} +; \
    rm -rf torch/test torch/include torch/share/cmake kubernetes/e2e_test; \
    if [ -d torch ]; then find torch/bin -not -type d -not -name torch_shm_manager -delete; fi; \
    find . -name '*.pyi' -delete; find . -name '*.a' -delete; \
    /opt/foxrun/bin/python -m compileall -q -j 0 --invalidation-mode unchecked-hash -x '_internal/py312_' /opt/foxrun/lib

FROM libraries AS program
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY foxrun foxrun
COPY trainer trainer
COPY workflows workflows
COPY orchestrator orchestrator
RUN python -m pip --python /opt/foxrun/bin/python install --no-cache-dir --no-compile --no-deps --prefix /program . && \
    /opt/foxrun/bin/python -m compileall -q --invalidation-mode unchecked-hash /program/lib

FROM libraries
# A name for the user: programs that look theirs up get an answer.
RUN echo 'foxrun:x:65532:65532:foxrun:/tmp:/usr/sbin/nologin' >> /etc/passwd && echo 'foxrun:x:65532:' >> /etc/group
COPY --from=program /program /opt/foxrun
# What a training of this commit is held against, where its hardware and configuration have one.
COPY goldens /opt/foxrun/goldens
# HOME: /tmp is the one place where every template can write. Output unbuffered: logs are read while a run goes on.
ENV PATH=/opt/foxrun/bin:$PATH HOME=/tmp USER=foxrun LOGNAME=foxrun PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
# Nothing can be written here, so nothing that a run writes can be imported in place of a library.
WORKDIR /opt/foxrun
USER 65532:65532
ARG TREE
ARG SHA=""
LABEL org.opencontainers.image.title=foxrun org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.revision=${SHA} dev.foxrun.tree=${TREE}
ENV FOXRUN_TREE_RUN=${TREE} FOXRUN_COMMIT_RUN=${SHA}
# No ENTRYPOINT: every template names its command, `foxrun` or `python -m trainer`, and CI systems bring a shell.
CMD ["foxrun", "--help"]
