"""Plain metric files: what real trainers write, compared with itself and with its neighbour, and every oddity."""

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
import zstandard

from orchestrator.compare import verdict as v
from orchestrator.compare.policy import Options
from orchestrator.compare.tolerance import Rule, Tolerance
from orchestrator.comparison import compare
from orchestrator.errors import UsageError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data" / "metrics"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"the real metric files are not at {DATA}")

COUNTS = {
    "baselines_ddpg_progress.json": (1, 26),
    "chipood_final_metrics.json": (1, 4),
    "chipood_metrics.jsonl": (31, 217),
    "cs336_no_rmsnorm_diverged.jsonl": (51, 561),
    "cs336_swiglu_ok.jsonl": (51, 561),
    "dreamerv3_procgen_ppg.json.gz": (48, 73392),
    "hf_trainer_state_viz.json": (216, 1476),
    "megatron_bert_dev_a100.json": (11, 70),
    "megatron_bert_dev_h100.json": (50, 264),
    "netra_train_log.jsonl": (1992, 5982),
    "openpi_train_log.jsonl": (175, 700),
    "rllib_apex_beamrider.result.json": (262, 26724),
    "rllib_apex_breakout.result.json": (262, 26724),
    "sb3_fetchpush_her.monitor.csv": (20000, 80002),
    "sb3_fetchpush_tqc.monitor.csv": (20000, 80002),
}


@needs_data
def test_every_json_and_csv_file_is_identical_to_itself_with_counts() -> None:
    found = {}
    for path in sorted(DATA.iterdir()):
        if path.suffix != ".txt":
            verdict = compare(path, path)
            assert (verdict.verdict, verdict.agreed is None) == ("identical", False), path
            assert verdict.agreed is not None
            assert verdict.agreed.planted_flip is not None
            assert verdict.agreed.planted_flip.found
            found[path.name] = (verdict.agreed.rows, verdict.agreed.metrics)
    assert found == COUNTS


@needs_data
@pytest.mark.parametrize(
    ("a", "b", "line", "rows"),
    [
        (
            "rllib_apex_beamrider.result.json",
            "rllib_apex_breakout.result.json",
            "step=1 leaf=episodes run_A=0 run_B=80 delta=80",
            "262 of 262 rows differ",
        ),
        (
            "megatron_bert_dev_a100.json",
            "megatron_bert_dev_h100.json",
            'step=1 leaf="lm loss.values" run_A=10.49689 run_B=10.60965 delta=0.11275999999999975',
            "50 of 50 rows differ; 39 rows are missing in A",
        ),
        (
            "cs336_swiglu_ok.jsonl",
            "cs336_no_rmsnorm_diverged.jsonl",
            "step=0 leaf=train_loss run_A=9.248043060302734 run_B=16.430675506591797 delta=7.1826324462890625",
            "51 of 51 rows differ",
        ),
    ],
)
def test_the_pairs_that_belong_together_drift_at_the_right_row(a: str, b: str, line: str, rows: str) -> None:
    verdict = compare(DATA / a, DATA / b)
    assert verdict.exit_code == 3
    assert verdict.first_divergence is not None
    assert verdict.first_divergence.line == f"FIRST_DIVERGENCE: {line}"
    assert verdict.message.endswith(rows)


@needs_data
@pytest.mark.parametrize(
    ("name", "says", "remedy"),
    [
        ("torchtitan_llama3_cuda.txt", "columns of numbers with blanks between them", "echo step,loss; tr"),
        ("mlperf_gpt3_result_0.txt", "a log with :::MLLOG before each line", "sed -n 's/^:::MLLOG //p'"),
    ],
)
def test_text_logs_are_refused_with_what_to_do(name: str, says: str, remedy: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        compare(DATA / name, DATA / name)
    assert remedy in caught.value.remedy
    assert name in str(caught.value)


@needs_data
def test_the_remedy_for_a_text_log_works(tmp_path: Path) -> None:
    for name in ("cuda", "rocm"):
        text = (DATA / f"torchtitan_llama3_{name}.txt").read_text()
        (tmp_path / name).write_text("step,loss\n" + text.replace(" ", ","))
    verdict = compare(tmp_path / "cuda", tmp_path / "rocm")
    assert verdict.first_divergence is not None
    assert verdict.first_divergence.line == (
        "FIRST_DIVERGENCE: step=1 leaf=loss run_A=8.049097061157227 run_B=8.048333168029785 "
        "delta=-0.0007638931274414062"
    )


def rows(count: int, **extra: Any) -> list[dict[str, Any]]:
    return [{"step": i, "loss": 1 / (i + 1), **extra} for i in range(count)]


def write(path: Path, values: list[Any], end: str = "\n") -> Path:
    path.write_text("".join(json.dumps(value) + end for value in values), newline="")
    return path


def pair(tmp_path: Path, a: list[Any], b: list[Any], options: Options | None = None) -> v.Verdict:
    return compare(write(tmp_path / "a.jsonl", a), write(tmp_path / "b.jsonl", b), options)


def line_of(verdict: v.Verdict) -> str:
    assert verdict.first_divergence is not None
    return verdict.first_divergence.line.removeprefix("FIRST_DIVERGENCE: ")


def test_fifty_rows_against_forty_nine(tmp_path: Path) -> None:
    verdict = pair(tmp_path, rows(50), rows(49))
    assert verdict.exit_code == 3
    assert line_of(verdict) == "step=49 leaf=row run_A=present run_B=missing delta=bits"
    assert "1 rows are missing in B" in verdict.message


def test_a_row_missing_in_the_middle_is_named_and_the_rest_still_agrees(tmp_path: Path) -> None:
    verdict = pair(tmp_path, rows(50), [row for row in rows(50) if row["step"] != 20])
    assert line_of(verdict) == "step=20 leaf=row run_A=present run_B=missing delta=bits"
    assert verdict.agreed is not None
    assert verdict.agreed.rows == 49


def test_reordered_rows_drift_and_are_called_so(tmp_path: Path) -> None:
    other = rows(10)
    other[3], other[4] = other[4], other[3]
    verdict = pair(tmp_path, rows(10), other)
    assert verdict.exit_code == 3
    assert line_of(verdict).startswith("step=3 ")
    assert (
        "B: step 3 comes after step 4: the steps are out of order (line 5); rows are compared by position"
        in verdict.notes
    )
    assert "B holds the rows of A in another order: the steps are reordered" in verdict.notes


def test_a_repeated_row_drifts_and_is_called_so(tmp_path: Path) -> None:
    other = rows(5)
    verdict = pair(tmp_path, rows(5), [*other[:3], other[2], *other[3:]])
    assert verdict.exit_code == 3
    assert "B: step 2 repeats (line 4); rows are compared by position" in verdict.notes


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        ("NaN", '"NaN"', "identical"),
        ("Infinity", '"Infinity"', "identical"),
        ("-Infinity", "Infinity", "drift"),
        ("NaN", "null", "drift"),
        ("NaN", '"nan"', "drift"),
        ("NaN", "0.5", "drift"),
        ("null", "null", "identical"),
        ("1", "1.0", "drift"),
        ("1.0", "1.00", "identical"),
        ("0.0", "-0.0", "drift"),
        ("1e2", "100.0", "identical"),
        ("true", "1", "drift"),
    ],
)
def test_values_as_they_are_written(tmp_path: Path, a: str, b: str, verdict: str) -> None:
    for name, value in (("a", a), ("b", b)):
        (tmp_path / name).write_text(f'{{"step": 0, "x": {value}}}\n{{"step": 1, "x": 2}}\n')
    assert compare(tmp_path / "a", tmp_path / "b").verdict == verdict


def test_bom_crlf_compression_and_key_order_say_nothing(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.jsonl", rows(20))
    text = plain.read_bytes()
    turned = [dict(reversed(row.items())) for row in rows(20)]
    variants = {
        "bom": b"\xef\xbb\xbf" + text,
        "crlf": text.replace(b"\n", b"\r\n"),
        "gz": gzip.compress(text),
        "zst": zstandard.compress(text),
        "order": "".join(json.dumps(row) + "\n" for row in turned).encode(),
        "no-end": text[:-1],
        "blank": text.replace(b"\n", b"\n\n"),
    }
    for name, data in variants.items():
        (tmp_path / name).write_bytes(data)
        assert compare(plain, tmp_path / name).verdict == "identical", name


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_a_cut_last_line_is_incomplete_and_named(tmp_path: Path, cut: int) -> None:
    a, b = write(tmp_path / "a.jsonl", rows(20)), tmp_path / "b.jsonl"
    b.write_bytes(a.read_bytes()[: -1 - cut])
    verdict = compare(a, b)
    assert (verdict.verdict, verdict.exit_code) == ("incomplete", 7)
    assert f"{b}, line 20: the last line is cut" in verdict.message


def test_a_cut_document_is_incomplete(tmp_path: Path) -> None:
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    a.write_text(json.dumps({"x": [1, 2], "y": 3}, indent=1))
    b.write_text(a.read_text()[:-4])
    assert compare(a, b).exit_code == 7


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_cut_compressed_file_is_incomplete(tmp_path: Path, ending: str) -> None:
    pack = gzip.compress if ending == "gz" else zstandard.compress
    data = pack(json.dumps(rows(500)).encode())
    (tmp_path / "a").write_bytes(data)
    (tmp_path / "b").write_bytes(data[: len(data) // 2])
    verdict = compare(tmp_path / "a", tmp_path / "b")
    assert verdict.exit_code == 7
    assert str(tmp_path / "b") in verdict.message


@pytest.mark.parametrize("text", ["", "\n\n", "[]", "{}", "\ufeff"])
def test_two_empty_files_are_incomplete(tmp_path: Path, text: str) -> None:
    for name in "ab":
        (tmp_path / name).write_text(text)
    assert compare(tmp_path / "a", tmp_path / "b").exit_code == 7


def test_different_formats_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("step,loss\n0,1.5\n")
    with pytest.raises(UsageError, match=r"is CSV and .* is JSON lines"):
        compare(tmp_path / "a.csv", write(tmp_path / "b.jsonl", rows(3)))


def test_one_line_of_json_is_json_lines_where_the_other_has_more(tmp_path: Path) -> None:
    verdict = pair(tmp_path, rows(1), rows(2))
    assert line_of(verdict) == "step=1 leaf=row run_A=missing run_B=present delta=bits"


def test_a_directory_against_a_file_and_a_missing_path_are_usage_errors(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", rows(2))
    with pytest.raises(UsageError, match=r"is a file and .* is a directory"):
        compare(file, tmp_path)
    with pytest.raises(UsageError, match="there is no such file or directory"):
        compare(file, tmp_path / "none")


@pytest.mark.parametrize("data", [b"\x00\x01\x02\x03", b"PK\x03\x04\xff\xfe", b"Epoch 1 done\nEpoch 2 done\n"])
def test_other_files_are_refused_by_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "weights.bin").write_bytes(data)
    with pytest.raises(UsageError, match=r"weights\.bin"):
        compare(tmp_path / "weights.bin", tmp_path / "weights.bin")


def test_only_clock_keys_differ_is_drift_with_advice_that_works(tmp_path: Path) -> None:
    a, b = rows(5, time_s=1.0, info={"pid": 1}), rows(5, time_s=2.0, info={"pid": 2})
    verdict = pair(tmp_path, a, b)
    assert verdict.exit_code == 3
    assert "only keys that look like a clock, a host or a process differ: time_s, info.pid" in verdict.notes
    command = f"foxrun compare {tmp_path}/a.jsonl {tmp_path}/b.jsonl --ignore time_s --ignore info.pid"
    assert verdict.next == f"leave out what may differ: `{command}`"
    assert pair(tmp_path, a, b, Options(ignore=("time_s", "info.pid"))).verdict == "identical"
    assert pair(tmp_path, a, b, Options(ignore=("time*", "pid"))).verdict == "identical"


def test_behind_clocks_the_first_real_difference_is_named(tmp_path: Path) -> None:
    b = rows(5, time=2.0)
    b[3]["loss"] = 7.0
    verdict = pair(tmp_path, rows(5, time=1.0), b)
    assert line_of(verdict) == "step=0 leaf=time run_A=1.0 run_B=2.0 delta=1.0"
    assert (
        "keys that look like a clock, a host or a process differ too: time; without them: step 3, loss" in verdict.notes
    )


def test_timesteps_are_no_clock(tmp_path: Path) -> None:
    verdict = pair(tmp_path, rows(3, timesteps_this_iter=5), rows(3, timesteps_this_iter=6))
    assert not [note for note in verdict.notes if "clock" in note]


def test_ignoring_everything_is_not_identical(tmp_path: Path) -> None:
    for b in ([{"x": 3}, {"x": 4}], [{"x": 1}, {"x": 2}]):
        verdict = pair(tmp_path, [{"x": 1}, {"x": 2}], b, Options(ignore=("*",)))
        assert (verdict.verdict, verdict.exit_code) == ("incomplete", 7)


def test_tolerance_by_key(tmp_path: Path) -> None:
    b = rows(5)
    b[2]["loss"] *= 1 + 1e-9
    b[4]["loss"] = math.nextafter(b[4]["loss"], 1)
    loose = Tolerance(rules=(Rule(pattern="lo*", rel=1e-8),))
    verdict = pair(tmp_path, rows(5), b, Options(tolerance=loose))
    assert (verdict.verdict, verdict.exit_code) == ("within_tolerance", 0)
    assert pair(tmp_path, rows(5), b, Options(tolerance=Tolerance(rtol=1e-8))).verdict == "within_tolerance"
    tight = Tolerance(rules=(Rule(pattern="loss", ulp=1),))
    assert line_of(pair(tmp_path, rows(5), b, Options(tolerance=tight))).startswith("step=2 ")


def test_rows_of_other_kinds_and_steps_by_other_names(tmp_path: Path) -> None:
    a = [{"training_iteration": 10 * i, "x": {"y": [i, i + 0.5]}} for i in range(1, 4)]
    b = json.loads(json.dumps(a))
    b[1]["x"]["y"][1] = 9.5
    assert line_of(pair(tmp_path, a, b)) == "step=20 leaf=x.y.1 run_A=2.5 run_B=9.5 delta=7.0"


def test_csv_headers_types_and_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b'#{"t_start": 1.5}\r\nr,l\r\n-50.0,50\r\nnan,7\r\n')
    (tmp_path / "b").write_bytes(b'#{"t_start": 2.5}\nr,l\n-50.0,50\nNaN,7\n')
    verdict = compare(tmp_path / "a", tmp_path / "b")
    assert line_of(verdict) == "step=header leaf=#1.t_start run_A=1.5 run_B=2.5 delta=1.0"
    assert verdict.agreed is not None
    assert verdict.agreed.rows == 2
    assert compare(tmp_path / "a", tmp_path / "b", Options(ignore=("t_start",))).verdict == "identical"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a,b\n1,2\n3\n", "line 3: 1 cells where the first line names 2 columns"),
        ("a,b\n1,2\n3", "line 3: the last line is cut"),
        ('a,b\n1,"2\n3,4\n', "line 3: not CSV: unexpected end of data"),
    ],
)
def test_broken_csv_is_incomplete_and_the_line_is_named(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text(text)
    verdict = compare(tmp_path / "a.csv", tmp_path / "b.csv")
    assert verdict.exit_code == 7
    assert says in verdict.message


def test_huge_integers_long_rows_and_repeated_keys(tmp_path: Path) -> None:
    big = {"step": 0, "n": 10**400, "xs": list(range(200_000))}
    assert pair(tmp_path, [big], [big]).verdict == "identical"
    assert pair(tmp_path, [big], [big | {"n": 10**400 + 1}]).exit_code == 3
    (tmp_path / "c").write_text('{"step": 0, "x": 1, "x": 2}\n{"step": 1, "x": 3}\n')
    verdict = compare(tmp_path / "c", tmp_path / "c")
    assert any("the key 'x' is there twice" in note for note in verdict.notes)
    (tmp_path / "d").write_text('{"step": 0, "n": ' + "9" * 5000 + "}\n")
    assert compare(tmp_path / "d", tmp_path / "d").exit_code == 7


def test_growth_is_over_the_rows_after_the_first_difference(tmp_path: Path) -> None:
    b = rows(6)
    for i in (2, 3, 5):
        b[i]["loss"] += 2.0**i
    growth = pair(tmp_path, rows(6), b).growth
    assert [(point.step, point.leaves_parted) for point in growth] == [(2, 1), (3, 1), (4, 0), (5, 1)]
    assert growth[-1].max_abs == pytest.approx(32.0)
