# make demo: install, then a regression pair of HEAD on this machine.   make test: install, then every test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: cluster-proofs cluster-faults image templates help install demo test check format lint types imports bench sensitivity gates bench-s3

help:  ## what there is
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

# The stamp is newer than what decides the set of packages, so a second `make` installs nothing.
$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

install: $(VENV)/.installed  ## install into .venv

demo: install  ## a regression pair of HEAD on synthetic market data
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo.sh

# The image's and a second controller's proofs take minutes of building and waiting: `make cluster-proofs` runs them.
PROOFS := tests/image tests/cluster/test_submit.py tests/cluster/test_nightly.py tests/cluster/test_localize_name.py tests/infra/test_bare.py tests/events/test_end_to_end.py

test: install  ## every test but those of cluster-proofs (cluster tests run where KUBECONFIG names a cluster)
	$(BIN)/python -m pytest -n 2 --dist worksteal $(addprefix --ignore ,$(PROOFS))

cluster-proofs: install  ## builds the image, runs pairs in it on the cluster, started by a push too; Argo under infra/'s rights
	$(BIN)/python -m pytest $(PROOFS)

# A cluster's own tool does it as well: make image IMAGE_TOOL=../shared/cluster/image IMAGE_ARGS='--build-arg TORCH_INDEX='
IMAGE_TOOL ?= docker
IMAGE_ARGS ?=
image:  ## the image of HEAD, as foxrun:SHA (docker; IMAGE_TOOL names another program)
	@git diff --quiet HEAD || { echo "commit first: the image is recorded as the tree of HEAD" >&2; exit 1; }
	$(IMAGE_TOOL) build -t foxrun:$$(git rev-parse HEAD) $(IMAGE_ARGS) --build-arg TREE=$$(git rev-parse 'HEAD^{tree}') \
	  --build-arg SHA=$$(git rev-parse HEAD) .

cluster-faults: install  ## every `-p fault=` here and on the cluster, side by side (KUBECONFIG; FOXRUN_IMAGE with HEAD in it)
	$(BIN)/python -m benchmarks.trainer_faults

templates: install  ## WorkflowTemplates in infra/ from workflows/
	$(BIN)/python -m infra.render

check: format lint types imports test  ## what CI checks

format: install
	$(BIN)/ruff format --check .

lint: install
	$(BIN)/ruff check .

types: install
	$(BIN)/mypy

imports: install
	$(BIN)/lint-imports

bench: install  ## speed, as ratios within one run; with a cluster (KUBECONFIG) also submit, list and watch
	$(BIN)/python -m benchmarks.compare
	$(BIN)/python -m benchmarks.tracing
	@if [ -n "$$KUBECONFIG" ]; then $(BIN)/python -m benchmarks.watching; \
	  else echo "submit, list and watch were not measured: KUBECONFIG names no cluster"; fi

bench-s3: install  ## requests and bytes of a comparison over S3 (FOXRUN_S3_ENDPOINT)
	$(BIN)/python -m benchmarks.s3

sensitivity: install  ## 1,000 single changes found, 1,000 clean pairs quiet
	$(BIN)/python -m benchmarks.sensitivity

gates: install  ## each random fault parts in 20 of 20 gates
	$(BIN)/python -m benchmarks.gates

faults: install  ## break a real cluster while a pair runs (FOXRUN_FAULT: the command that breaks and mends it)
	$(BIN)/python -m benchmarks.faults

bench-submit: install  ## what a submit takes beyond the server's own answer, median of pairs (KUBECONFIG)
	$(BIN)/python -m benchmarks.submit

bench-watching: install  ## memory of one process that watches 1,000 workflows; what a submit costs (KUBECONFIG)
	$(BIN)/python -m benchmarks.watching

zoo: install  ## localize on every culprit and clean trainer of tests/zoo: the score, hours on two cores (ZOO: options, docs/zoo.md)
	$(BIN)/python -m tests.zoo --jobs 2 $(ZOO)

# With any Python that has this package's dependencies and torch for CUDA: `make zoo-gpu ZOO_PYTHON=python3`.
ZOO_PYTHON ?= $(BIN)/python
zoo-gpu:  ## the same on a machine with a GPU, for those that need one; the table as Markdown in zoo-gpu.md
	$(ZOO_PYTHON) -m tests.zoo --needs cuda,triton --part culprits --jobs 4 --limit 840 --markdown zoo-gpu.md $(ZOO)
