"""The minimal trainers of the documentation write run directories that are whole and repeat to the bit."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from foxrun import Run, fingerprint, jsonio, open_run, schema

ROOT = Path(__file__).parents[2]
NODE = shutil.which("node")
TRAINERS = [
    pytest.param([sys.executable, str(ROOT / "examples" / "minimal_trainer.py")], id="python"),
    pytest.param(
        [NODE or "node", str(ROOT / "examples" / "minimal_trainer.mjs")],
        id="javascript",
        marks=pytest.mark.skipif(NODE is None, reason="node is not installed"),
    ),
]
COMPARED = ("bits.u64", "diag.jsonl", "eval_summary.json", "leaves.json")


def train(command: list[str], out: Path, seed: int) -> Run:
    arguments = [*command, "--out", str(out), "--seed", str(seed), "--mode", "1", "--steps", "40"]
    arguments += ["--eval-steps", "5", "--parameters", "{}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run(arguments, check=True, cwd=out.parent, env=environment)
    return open_run(out)


def contents(run: Run) -> dict[str, bytes]:
    return {name: b"".join(run.blocks(name)) for name in COMPARED}


@pytest.mark.parametrize("command", TRAINERS)
def test_a_minimal_trainer_writes_a_run(tmp_path: Path, command: list[str]) -> None:
    run, again, other = (train(command, tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert contents(run) == contents(again)
    assert contents(run)["bits.u64"] != contents(other)["bits.u64"]

    rows = list(run.rows())
    assert run.complete
    assert run.problems == []
    assert run.verify() == []
    assert [row.step for row in rows] == list(range(41))
    assert run.row_count == 41
    assert rows[-2].metrics["loss"] < rows[0].metrics["loss"]
    assert run.manifest is not None
    assert (run.manifest["seed"], run.manifest["exit_reason"]) == (1, "completed")
    assert (
        run.manifest["config_sha256"] == hashlib.sha256(jsonio.canonical(run.manifest["config"]).encode()).hexdigest()
    )

    validator = jsonschema.Draft202012Validator
    validator(schema.json_schema("run_manifest")).validate(run.manifest)
    validator(schema.json_schema("leaves")).validate(jsonio.loads(contents(run)["leaves.json"]))
    for line in contents(run)["diag.jsonl"].splitlines():
        validator(schema.json_schema("diag_row")).validate(jsonio.loads(line))

    from array import array

    assert int.from_bytes(run.bits(0, 1)[:8], "little") == fingerprint(array("d", [0.0, 0.0]))
    last = [run.summary["slope"], run.summary["offset"]] if run.summary else []
    assert int.from_bytes(run.bits(40, 41)[:8], "little") == fingerprint(array("d", last))
    assert run.bits(40, 41)[8:] == bytes(8)

    assert run.manifest["blocks"].keys() == {"bits.u64", "diag.jsonl"}
    for name, block in run.manifest["blocks"].items():
        data = contents(run)[name]
        ends = [*block["offsets"][1:], len(data)]
        found = [hashlib.sha256(data[a:b]).hexdigest() for a, b in zip(block["offsets"], ends, strict=True)]
        assert found == block["sha256"]


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_the_fingerprint_without_a_library_is_the_same(tmp_path: Path) -> None:
    script = (
        f"process.argv = [process.argv[0], '', '--out', {jsonio.dumps(str(tmp_path / 'run'))}];"
        f"const {{fingerprint}} = await import({jsonio.dumps((ROOT / 'examples' / 'minimal_trainer.mjs').as_uri())});"
        "for (const v of [[], [0], [-0], [1.5, -2.25, 3], [NaN], [Infinity, -Infinity, 5e-324]])"
        " console.log(fingerprint(new Float64Array(v)).toString())"
    )
    assert NODE is not None
    done = subprocess.run([NODE, "--input-type=module", "-e", script], capture_output=True, text=True, check=True)
    from array import array

    values = [[], [0.0], [-0.0], [1.5, -2.25, 3.0], [float("nan")], [float("inf"), float("-inf"), 5e-324]]
    assert [int(line) for line in done.stdout.split()] == [fingerprint(array("d", value)) for value in values]
