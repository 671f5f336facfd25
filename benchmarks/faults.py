"""A pair on a real cluster while something breaks: each fault once, and what it came to.

    FOXRUN_FAULT=path/to/fault python -m benchmarks.faults [NAME ...]

The pair is the rendered one with busybox in the place of trainer and foxrun, so a fault costs a minute or two. Exit
code 1 when one ends in another verdict than it should, or a log line or a file of a leg is lost or told twice.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.fault_kinds import FAULTS, FILES, LINES, Fault, Pair
from orchestrator.engines.argo import ArgoEngine
from orchestrator.engines.argo.argo_server import ArgoServerApi
from orchestrator.engines.argo.credentials import KubeCredentials, ServerCredentials
from orchestrator.engines.argo.kubernetes_api import KubernetesApi
from orchestrator.engines.argo.nodes import pod_name, pods, uid_of
from orchestrator.errors import FoxrunError
from tests.workflows.cluster import BUSYBOX, LEG, Cluster, as_busybox, unique
from workflows.regression_pair import regression_pair
from workflows.render import to_dict

DEADLINE_S = 540
# The parts take seconds; a busy machine with a server that restarts needs more.
_TIMEOUTS = {"leg_timeout_s": 300, "compare_timeout_s": 300, "alert_timeout_s": 300}
_COUNT = 'i=0; while [ $i -lt {lines} ]; do echo "line $i"; i=$((i+1)); sleep {pause}; done\n'
_WRITE = f'i=0; while [ $i -lt {FILES} ]; do head -c 4096 /dev/zero > "$out/attempt/file-$i"; i=$((i+1)); done\n'
_SAID = 'echo "$what $verdict$saw" > "$file"'
_JSON = (
    'case "$what" in check) what=gate;; *) what=pair;; esac\n'
    'printf \'{"verdict": "%s", "exit_code": %s, "message": "%s", "subject": "%s"}\' '
    '"$verdict" "$code" "every file is there" "$what" > "$file"'
)
_ATTEMPT = {f"attempt/{name}" for name in ("branch", "code", "parameters.json", *(f"file-{i}" for i in range(FILES)))}


@dataclasses.dataclass(frozen=True)
class Came:
    """What one pair came to: the verdict of `foxrun watch`, its exit code, and what is left of the legs."""

    verdict: str
    exit_code: int
    message: str
    attempts: int
    lines: int
    twice: int
    files: int
    seconds: float


def main(wanted: list[str]) -> int:
    """Run the faults, print a line for each; returns the exit code."""
    unknown = sorted(set(wanted) - set(FAULTS))
    if unknown:
        print(f"no such fault: {', '.join(unknown)}; there are: {', '.join(FAULTS)}", file=sys.stderr)
        return 2
    # What is broken is mended, however this ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"{'fault':32} {'verdict':15} {'exit':>4} {'legs':>5} {'lines':>6} {'files':>8} {'seconds':>8}", flush=True)
    bad = 0
    for name, fault in FAULTS.items():
        if wanted and name not in wanted:
            continue
        came = run(fault)
        wrong = troubles(fault, came)
        bad += bool(wrong)
        row = f"{name:32} {came.verdict:15} {came.exit_code:4} {came.attempts:5} {came.lines:3}/{LINES}"
        row += f" {came.files:4}/{2 * len(_ATTEMPT)} {came.seconds:8.0f}"
        print(row + (f"   <-- {'; '.join(wrong)}: {came.message}" if wrong else ""), flush=True)
    return 1 if bad else 0


def troubles(fault: Fault, came: Came) -> list[str]:
    """What is not as it should be."""
    wrong = []
    if came.verdict != fault.verdict:
        wrong.append(f"not {fault.verdict}")
    if fault.says not in came.message:
        wrong.append(f"does not say {fault.says!r}")
    if came.lines != LINES or came.twice:
        wrong.append(f"{LINES - came.lines} lines are lost, {came.twice} told twice")
    if came.files != (len(_ATTEMPT) if fault.one_leg else 2 * len(_ATTEMPT)):
        wrong.append("files are lost")
    return wrong


def run(fault: Fault) -> Came:
    """One pair with one fault; everything that it made is removed again."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        environ = environment(fault, home)
        engine = engine_of(fault, home)
        manifest = manifest_of(fault)
        fault.prepare(manifest)
        pair = Pair(engine=engine, name=engine.submit(manifest), environ=environ, home=home)
        lines: list[tuple[str, str]] = []

        def read() -> None:
            lines.extend((line.node, line.text) for line in engine.logs(pair.name, follow=True, node="leg-b"))

        reading = threading.Thread(target=read, daemon=True)
        reading.start()
        try:
            pair.start_watching()
            pair.until_both_run(DEADLINE_S)
            try:
                fault.inject(pair)
                verdict, code = pair.watched(DEADLINE_S)
            finally:
                fault.mend(pair)
            verdict, code = fault.afterwards(pair, verdict, code)
            reading.join(60)
            workflow = ArgoEngine(KubernetesApi(KubeCredentials()), home).get(pair.name)
            files = kept(workflow)
        finally:
            pair.stop_watching()
            remove(pair.name, home)
            fault.tidy()
    counted = Counter(lines)
    # A leg that was run again prints anew. Of an attempt that was taken away nobody has all lines.
    last = max((node for node, _ in lines), default="")
    return Came(
        verdict=str(verdict.get("verdict")),
        exit_code=code,
        message=str(verdict.get("message")),
        attempts=sum(str(node["displayName"]).startswith("leg-") for node in pods(workflow).values()),
        lines=sum(counted[last, f"line {i}"] > 0 for i in range(LINES)),
        twice=sum(times > 1 for times in counted.values()),
        files=files,
        seconds=time.monotonic() - began,
    )


def manifest_of(fault: Fault) -> dict[str, Any]:
    """The rendered pair, its parts made of busybox."""
    script = _COUNT.format(lines=LINES, pause=fault.pause_s) + LEG + _WRITE
    parameters = dataclasses.replace(
        unique(BUSYBOX), gate=False, trainer=("sh", "-c", script, "trainer"), retries=fault.retries, **_TIMEOUTS
    )
    manifest = as_busybox(to_dict(regression_pair(parameters)))
    said, told = _SAID.replace("$", "$$"), _JSON.replace("$", "$$")
    for container in [t["container"] for t in manifest["spec"]["templates"] if "container" in t]:
        container["command"] = [word.replace(said, told) for word in container["command"]]
    return manifest


def kept(workflow: dict[str, Any]) -> int:
    """How many files of the attempts that succeeded lie in the bucket, whole and under their keys."""
    cluster = Cluster()
    found = 0
    for node in pods(workflow).values():
        leg = str(node["displayName"]).split("(")[0]
        if leg.startswith("leg-") and node["phase"] == "Succeeded":
            prefix = f"{uid_of(workflow)}/{leg}/{pod_name(workflow, node)}/"
            found += len({key.removeprefix(prefix) for key in cluster.keys(prefix)} & _ATTEMPT)
    return found


def environment(fault: Fault, home: Path) -> dict[str, str]:
    """Of `foxrun watch`: by the Kubernetes API, or by argo-server where that breaks or its token does."""
    environ = {k: v for k, v in os.environ.items() if fault.through_server or not k.startswith("ARGO_")}
    environ |= {"FOXRUN_HOME": str(home), "FOXRUN_ENGINE": "argo", "FOXRUN_NAMESPACE": namespace()}
    if fault.through_server:
        scheme = "http" if os.environ.get("ARGO_SECURE") == "false" else "https"
        (home / "token").write_text(fault.token(), "utf-8")
        environ |= {"FOXRUN_ARGO_SERVER": f"{scheme}://{os.environ['ARGO_SERVER']}"}
        environ |= {"FOXRUN_ARGO_TOKEN_FILE": str(home / "token")}
        environ.pop("ARGO_TOKEN", None)
    return environ


def engine_of(fault: Fault, home: Path) -> ArgoEngine:
    """The engine that submits and reads logs, the same way as `foxrun watch` goes."""
    if not fault.through_server:
        return ArgoEngine(KubernetesApi(KubeCredentials()), home)
    credentials = ServerCredentials(
        server=os.environ["ARGO_SERVER"],
        token_file=str(home / "token"),
        secure=os.environ.get("ARGO_SECURE", "true") != "false",
        namespace=namespace(),
    )
    return ArgoEngine(ArgoServerApi(credentials), home)


def namespace() -> str:
    """Where the pairs run."""
    return os.environ.get("ARGO_NAMESPACE", "argo")


def remove(name: str, home: Path) -> None:
    """The workflow and what it stored."""
    engine = ArgoEngine(KubernetesApi(KubeCredentials()), home)
    try:
        workflow = engine.get(name)
        engine.delete(name, force=True)
    except FoxrunError as error:
        print(f"{name} is left: {error}", file=sys.stderr)
        return
    cluster = Cluster()
    for prefix in (f"{uid_of(workflow)}/", f"{name}/"):
        for key in cluster.keys(prefix):
            cluster.remove(key)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
