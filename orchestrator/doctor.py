"""One check for each part that foxrun stands on; each says what it found, and what to do when that is not enough."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.alert_rules import named
from orchestrator.alerts import problem_of, shown
from orchestrator.settings import Settings, home_directory

OK, WARNING, BROKEN = "ok", "warning", "broken"
FREE_BYTES_NEEDED = 1 << 30
PROBE_TIMEOUT_S = 120
# Run in a process of its own: foxrun itself never imports torch.
_TORCH_PROBE = """
import json, torch
gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
torch.use_deterministic_algorithms(True)
a = torch.arange(64 * 64, dtype=torch.float32).reshape(64, 64)
print(json.dumps({"version": torch.__version__, "threads": torch.get_num_threads(), "gpus": gpus,
                  "exact": bool(torch.equal(a @ a, a @ a))}))
"""
# What outside settings may change about bits; the trainer refuses or corrects them.
_SUSPICIOUS = ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "NVIDIA_TF32_OVERRIDE", "PYTHONHASHSEED", "LD_PRELOAD")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found; ``remedy`` is empty where all is well."""

    part: str
    state: str
    found: str
    remedy: str = ""


def examine(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Every check, one after another; none of them raises."""
    checks: list[Callable[[], Iterator[Finding]]] = [
        _python,
        _torch,
        _git,
        lambda: _home(home_directory(settings)),
        _memory_poison,
        _clock,
        lambda: _alerts(settings),
        lambda: _variables(environ, settings),
    ]
    if settings.engine == "argo":
        checks.append(lambda: _cluster(settings, environ))
    for check in checks:
        try:
            yield from check()
        except Exception as error:  # a check that fails is a finding
            # Its text might hold an alert URL, so only its kind is shown.
            part = getattr(check, "__name__", "check").strip("_<>")
            yield Finding(
                part=part, state=BROKEN, found=f"the check failed: {type(error).__name__}", remedy="report it"
            )


def _cluster(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    from orchestrator.cluster_doctor import examine_cluster  # loads what only a cluster needs

    return examine_cluster(settings, environ)


def _python() -> Iterator[Finding]:
    good = sys.version_info >= (3, 11)
    yield Finding(
        part="python",
        state=OK if good else BROKEN,
        found=f"{platform.python_version()} at {sys.executable}",
        remedy="" if good else "install Python 3.11 or newer, then make install",
    )
    if sys.platform != "linux":
        yield Finding(
            part="system", state=WARNING, found=sys.platform, remedy="use Linux: the local engine is tested there alone"
        )


def _torch() -> Iterator[Finding]:
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _TORCH_PROBE],
            capture_output=True,
            text=True,
            timeout=PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield Finding(
            part="torch", state=BROKEN, found=f"no answer in {PROBE_TIMEOUT_S} s", remedy="reinstall: make install"
        )
        return
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        yield Finding(
            part="torch", state=BROKEN, found=last, remedy="install it: make install (or pip install 'torch>=2.11')"
        )
        return
    facts = json.loads(done.stdout.strip().splitlines()[-1])
    new_enough = tuple(int(n) for n in facts["version"].split("+")[0].split(".")[:2]) >= (2, 11)
    yield Finding(
        part="torch",
        state=OK if new_enough and facts["exact"] else BROKEN,
        found=facts["version"] + ("" if facts["exact"] else ", and a product of matrices differs when it is repeated"),
        remedy="" if new_enough and facts["exact"] else "pip install 'torch>=2.11'",
    )
    gpus = facts["gpus"]
    yield Finding(
        part="gpu", state=OK, found=", ".join(sorted(set(gpus))) if gpus else "none: the trainer runs on the CPU"
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Finding(
        part="cpu",
        state=OK if cores >= 2 else WARNING,
        found=f"{cores} usable, torch would take {facts['threads']} threads (the trainer takes 1 unless told)",
        remedy="" if cores >= 2 else "give it 2: the legs run side by side",
    )


def _git() -> Iterator[Finding]:
    program = shutil.which("git")
    if program is None:
        yield Finding(part="git", state=BROKEN, found="not installed", remedy="install git (apt-get install git)")
        return
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    from foxrun import git

    try:
        where = f"in {git.top_level(Path.cwd())}, at {git.resolve(Path.cwd(), 'HEAD')[:12]}"
    except git.GitError as error:
        yield Finding(
            part="git",
            state=WARNING,
            found=f"{done.stdout.strip()}; here: {error.what}",
            remedy=error.remedy or "cd to one",
        )
        return
    yield Finding(part="git", state=OK, found=f"{done.stdout.strip()}, {where}")


def _home(home: Path) -> Iterator[Finding]:
    probe = home / f".doctor-{os.getpid()}"
    try:
        home.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"probe")
        probe.unlink()
    except OSError as error:
        yield Finding(
            part="home",
            state=BROKEN,
            found=f"{home}: {error.strerror}",
            remedy="set FOXRUN_HOME to a directory you may write",
        )
        return
    yield Finding(part="home", state=OK, found=str(home))
    free = shutil.disk_usage(home).free
    yield Finding(
        part="disk",
        state=OK if free >= FREE_BYTES_NEEDED else BROKEN,
        found=f"{free / (1 << 30):.1f} GiB free at {home}",
        remedy=""
        if free >= FREE_BYTES_NEEDED
        else "make room: foxrun delete --completed, or set FOXRUN_HOME elsewhere",
    )


def _memory_poison() -> Iterator[Finding]:
    """Whether fresh memory really holds the byte that the gate asks for."""
    probe = (
        "import ctypes; c = ctypes.CDLL(None); c.malloc.restype = ctypes.c_void_p; "
        "print(ctypes.string_at(c.malloc(4096), 4096)[2048])"
    )
    env = {**os.environ, "MALLOC_PERTURB_": "85"}
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, env=env, timeout=60, check=False
    )
    works = done.stdout.strip() == str(85 ^ 0xFF)
    library = " ".join(part for part in platform.libc_ver() if part) or "unknown C library"
    yield Finding(
        part="malloc",
        state=OK if works else WARNING,
        found=f"{library}: MALLOC_PERTURB_ {'fills' if works else 'does not fill'} fresh memory",
        remedy=""
        if works
        else "use glibc without another allocator preloaded: the gate cannot see reads of unset memory here",
    )


def _clock() -> Iterator[Finding]:
    good = time.gmtime().tm_year >= 2025 and time.get_clock_info("monotonic").monotonic
    yield Finding(
        part="clock",
        state=OK if good else BROKEN,
        found=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        remedy="" if good else "set the clock (timedatectl set-ntp true): times of parts and names of runs stand on it",
    )


def _alerts(settings: Settings) -> Iterator[Finding]:
    if not settings.alerts:
        yield Finding(part="alerts", state=OK, found="no channel is set")
        return
    for word in settings.alerts:
        problem, source = problem_of(named(word)[1]), settings.sources.get("alerts", "default")
        yield Finding(
            part="alerts",
            state=BROKEN if problem else OK,
            found=f"{shown(word)} from {source}" + (f": {problem}" if problem else ""),
            remedy="see docs/alerts.md for the URL of each channel" if problem else "",
        )


def _variables(environ: Mapping[str, str], settings: Settings) -> Iterator[Finding]:
    for name in _SUSPICIOUS:
        if environ.get(name):
            yield Finding(
                part="environment", state=WARNING, found=f"{name} is set, and may decide bits", remedy=f"unset {name}"
            )
    for note in settings.notes:
        yield Finding(part="environment", state=WARNING, found=note, remedy="mend or unset it")
