"""Requests and bytes of foxrun compare over S3, for an identical pair and for one that parts, against a real server.

Reads FOXRUN_S3_ENDPOINT, FOXRUN_S3_BUCKET and boto3's own variables; without an endpoint it says so and measures
nothing. To reach: an identical pair reads its manifests only, a parted one the differing block only.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.synthetic import write_run
from foxrun import Run, RunWriter, jsonio, open_run
from orchestrator import comparison
from orchestrator.compare.verdict import Verdict
from orchestrator.places import Places
from orchestrator.settings import load_settings
from orchestrator.stores.s3 import S3Store

ROWS = 25_000
LEAVES = 711


class Tally:
    """What goes through a client of boto3: one entry a request (operation, key, range), and the bytes of all bodies."""

    def __init__(self, client: Any) -> None:
        self.requests: list[tuple[str, str, str]] = []
        self.bytes = 0
        client.meta.events.register("before-parameter-build.s3", self._asked)
        client.meta.events.register("after-call.s3", self._answered)

    def _asked(self, params: Mapping[str, Any], model: Any, **_: Any) -> None:
        self.requests.append((model.name, params.get("Key") or params.get("Prefix") or "", params.get("Range", "")))

    def _answered(self, http_response: Any, model: Any, **_: Any) -> None:
        length = http_response.headers.get("content-length")
        if length is None and not model.has_streaming_output:
            length = len(http_response.content)
        if model.name != "HeadObject":  # whose length is that of a body that does not come
            self.bytes += int(length or 0)

    def reset(self) -> None:
        """Count from here."""
        self.requests.clear()
        self.bytes = 0


def upload(store: S3Store, directory: Path, key: str) -> None:
    """Every file below a directory, one object a file: what Argo's executor does for an artifact that is not packed."""
    for file in sorted(directory.rglob("*")):
        if file.is_file():
            store.write(f"{key}/{file.relative_to(directory).as_posix()}", file.read_bytes())


def parted_copy(source: Path, out: Path, row: int) -> Path:
    """The run again, written anew with another fingerprint and another metric from `row` on: drift that stays."""
    run: Run = open_run(source)
    manifest = dict(run.manifest or {})
    known = ("code", "seed", "mode", "config", "inputs", "environment", "variables", "command")
    writer = RunWriter(out, leaves=run.leaves, manifest={key: manifest[key] for key in known if key in manifest})
    width = 8 * len(run.leaves)
    rows = run.rows()
    for start in range(0, run.row_count, 256):
        stop = min(run.row_count, start + 256)
        bits = bytearray(run.bits(start, stop))
        lines = []
        for index in range(start, stop):
            line = next(rows)
            metrics = dict(line.metrics)
            if index >= row:
                bits[(index - start) * width + 8] ^= 1
                metrics["metric_0"] = metrics["metric_0"] + 1.0
            lines.append({"step": line.step, "phase": line.phase, "checksums": line.checksums, "metrics": metrics})
        writer.append(lines, bits)
    writer.write_summary(run.summary or {})
    writer.finish()
    return writer.path


def main() -> int:
    """Measure and print; 1 when more was read than the manifests say is needed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--leaves", type=int, default=LEAVES)
    arguments = parser.parse_args()
    settings = load_settings(Path.cwd(), os.environ)
    if not settings.s3_endpoint or not settings.s3_bucket:
        print("set FOXRUN_S3_ENDPOINT and FOXRUN_S3_BUCKET to measure over S3: nothing was measured")
        return 0
    places = Places(settings, say=lambda text: print(text, file=sys.stderr))
    store = places.store()
    prefix = f"benchmarks/{secrets.token_hex(6)}"
    with tempfile.TemporaryDirectory(prefix="foxrun-bench-s3-") as name:
        folder = Path(name)
        a = write_run(folder / "a", rows=arguments.rows, leaves=arguments.leaves)
        b = parted_copy(a, folder / "b", arguments.rows // 2)
        size = sum(file.stat().st_size for file in a.iterdir())
        manifest = (a / "run_manifest.json").stat().st_size
        small = sum((a / file).stat().st_size for file in ("leaves.json", "eval_summary.json"))
        described = jsonio.loads((a / "run_manifest.json").read_bytes())
        blocks = len(described["blocks"]["bits.u64"]["offsets"])
        try:
            for run, side in ((a, "a"), (a, "same"), (b, "b")):
                upload(store, run, f"{prefix}/{side}/{run.name}")
            shutil.rmtree(folder / "a")
            tally = Tally(store.client)
            shape = f"{arguments.rows:,} rows x {arguments.leaves} leaves"
            print(f"{shape}, {size / 1e6:.0f} MB a run, {blocks} blocks of rows")
            most = {"same": 2 * manifest, "b": 2 * (manifest + small) + 2 * 2 * (size // blocks + 1)}
            missed = False
            for side, expected in (("same", "identical"), ("b", "drift")):
                tally.reset()
                verdict = compared(store, prefix, side, places)
                listed = sum(1 for operation, *_ in tally.requests if operation == "ListObjectsV2")
                missed |= verdict.verdict != expected or tally.bytes > most[side] * 1.05 + 20_000
                requests = f"{len(tally.requests)} requests ({listed} listings)"
                share = tally.bytes / (2 * size)
                print(f"  {verdict.verdict:10} {requests}, {tally.bytes:,} bytes: {share:.3%} of both runs")
            return int(missed)
        finally:
            store.delete(prefix)


def compared(store: S3Store, prefix: str, side: str, places: Places) -> Verdict:
    """The verdict on run a and another."""
    return comparison.compare(store.url(f"{prefix}/a"), store.url(f"{prefix}/{side}"), places=places)


if __name__ == "__main__":
    raise SystemExit(main())
