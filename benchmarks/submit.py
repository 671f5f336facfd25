"""What `foxrun submit --engine argo` takes beyond the server's own answer, in pairs, on a real cluster.

python -m benchmarks.submit [PAIRS]. Each pair is the bare request, over a connection of its own, and the whole command
with the same request (checked by the server, not stored). Exit code 1 when the median is over 1 s.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.credentials import KubeCredentials
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from tests.workflows.cluster import BUSYBOX, unique
from workflows.regression_pair import regression_pair
from workflows.render import to_dict

PAIRS = 9
LIMIT_S = 1.0
# As JSON: a submit prints a name, where a dry run prints 20 KB, and YAML takes a quarter of a second for them.
COMMAND = (sys.executable, "-m", "orchestrator", "submit", "--regression-pair", "--dry-run=server", "--engine", "argo")
COMMAND += ("-o", "json")


def main(pairs: int) -> int:
    """Measure, print, and say whether it is within its limit."""
    workflow = to_dict(regression_pair(unique(BUSYBOX)))
    environ = {name: value for name, value in os.environ.items() if name != "ARGO_SERVER"}
    answers, beyond, cpu = [], [], []
    for _ in range(pairs):
        answers.append(answer(workflow))
        used, began = children_cpu(), time.monotonic()
        subprocess.run(COMMAND, check=True, capture_output=True, env=environ)
        beyond.append(time.monotonic() - began - answers[-1])
        cpu.append(children_cpu() - used)
    median = statistics.median(beyond)
    print(
        f"submit beyond the server's own answer: median {median:.2f} s of {pairs} pairs "
        f"({min(beyond):.2f} to {max(beyond):.2f}; limit {LIMIT_S:g} s), {statistics.median(cpu):.2f} s of processor; "
        f"the answer itself {statistics.median(answers):.2f} s"
    )
    return int(median > LIMIT_S)


def answer(workflow: dict[str, object]) -> float:
    """Seconds of the request alone."""
    engine = ArgoEngine(KubernetesApi(KubeCredentials()), Path(tempfile.gettempdir()))
    began = time.monotonic()
    engine.check(workflow)
    return time.monotonic() - began


def children_cpu() -> float:
    """Seconds of the processor that ended children of this process took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS))
