"""One specimen through ``foxrun localize``: in a directory of its own, as a person would run it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.zoo.proof import ROOT, command_of, prove
from tests.zoo.score import CODE, Mark, mark, verified
from tests.zoo.specimen import Specimen

FOUND, CLEAN = 3, 0


def run(specimen: Specimen, *, timeout_s: int, keep: Path | None = None) -> Mark:
    """Localise ``specimen`` and mark the answer; its cured variant runs only where the remedy hangs on it."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="foxrun-zoo-") as name:
        result, trouble = localize(specimen, Path(name), timeout_s)
    seconds = time.monotonic() - started
    if keep is not None and result is not None:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{specimen.id}.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
    cured = None
    if result is not None and result["found"] and CODE in specimen.remedies and not verified(result):
        proof = prove(specimen, 2, cured=True)
        cured = not proof.parted and not proof.failed
        trouble = trouble or (f"the cured variant: {proof.words or 'parts'}" if not cured else "")
    return mark(specimen, result, seconds=seconds, cured_clean=cured, trouble=trouble)


def localize(
    specimen: Specimen, folder: Path, timeout_s: int, options: Sequence[str] = ()
) -> tuple[dict[str, Any] | None, str]:
    """(what ``-o json`` printed, "") or (None, why there is nothing)."""
    work = folder / "work"
    work.mkdir()
    file = work / specimen.path.name
    shutil.copyfile(specimen.path, file)
    command = [sys.executable, "-P", "-m", "orchestrator", "localize", "-o", "json", "--timeout", f"{timeout_s}s"]
    command += options
    if specimen.pair:
        first, second = specimen.pair
        command += ["--other", " ".join(_filled(second, file)), "--", *_filled(first, file)]
    else:
        command += ["--", *_filled(command_of(specimen, file), file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(folder)}
    environment.pop("PYTHONHASHSEED", None)
    try:
        done = subprocess.run(
            command, cwd=work, env=environment, text=True, capture_output=True, timeout=timeout_s + 120, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"did not end {timeout_s + 120} s after it began, in spite of --timeout"
    try:
        result = json.loads(done.stdout)
    except ValueError:
        return None, f"exit code {done.returncode}: {done.stderr.strip()[-300:]}"
    if not isinstance(result, dict) or "found" not in result:
        return None, f"exit code {done.returncode}: {done.stdout.strip()[:300]}"
    if done.returncode != (FOUND if result["found"] else CLEAN):
        return None, f"found={result['found']} with exit code {done.returncode}: {done.stderr.strip()[-200:]}"
    return result, ""


def _filled(command: tuple[str, ...] | list[str], file: Path) -> list[str]:
    """Placeholders: {file}, and python for this interpreter; {out} stays, it is localize's own."""
    return [sys.executable if part == "python" else part.replace("{file}", str(file)) for part in command]
