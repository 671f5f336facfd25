"""Two runs: what agrees, where they part, and every row of the verdict table that two directories can give."""

import dataclasses
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.synthetic import manifest_of, reseal
from foxrun import jsonio
from orchestrator.compare import verdict as v
from orchestrator.compare.divergence import Growth
from orchestrator.compare.policy import Options
from orchestrator.compare.tolerance import Rule, Tolerance
from orchestrator.comparison import compare
from tests.compare.runs import LEAVES, SUMMARY, edit_json, edit_rows, make, word


def test_an_identical_pair_says_how_much_agreed(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b")
    verdict = compare(a, b)
    assert (verdict.verdict, verdict.exit_code) == ("identical", 0)
    assert verdict.message == "every compared bit agrees: 6 rows x 4 leaves"
    assert verdict.agreed == v.Agreement(
        rows=6, leaves=4, values=24, metrics=3, planted_flip=v.PlantedFlip(row=4, leaf="encoder_output", found=True)
    )
    assert v.lines(verdict) == [
        "identical: every compared bit agrees: 6 rows x 4 leaves",
        f"A: {a} (6 rows, seed 43, mode 1, commit cccccccccccc)",
        f"B: {b} (6 rows, seed 43, mode 1, commit cccccccccccc)",
        "agreed: 24 fingerprints of 4 leaves, 6 of 6 rows throughout",
        "planted flip in a copy (row 4, encoder_output): found",
    ]


def test_untaken_fingerprints_are_not_counted_and_constant_leaves_are_named(tmp_path: Path) -> None:
    def change(words: list[list[int]], lines: list[Any]) -> None:
        for i, row in enumerate(words):
            row[0] = 77
            row[1] = 0
            row[2] = 0 if i > 3 else row[2]

    verdict = compare(make(tmp_path / "a", change=change), make(tmp_path / "b", change=change))
    assert verdict.agreed is not None
    assert verdict.agreed.values == 24 - 6 - 2
    assert verdict.agreed.never_changed == ["env_cash"]
    assert "no fingerprint was ever taken of 1 leaves: vsn_w" in verdict.notes


def test_a_parted_leaf_with_a_checksum_is_named_by_it(tmp_path: Path) -> None:
    def change(words: list[list[int]], lines: list[Any]) -> None:
        for row in (3, 4, 5):
            words[row][1] ^= 1
            lines[row]["checksums"]["vsn_w"] += 2.0 ** (row - 10)
        words[3][3] ^= 1

    other = dict(SUMMARY, total_pnl_usd=750.0)
    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b", change=change, summary=other))
    assert verdict.exit_code == 3
    assert verdict.first_divergence is not None
    line = "FIRST_DIVERGENCE: step=3 leaf=vsn_w run_A=3.125 run_B=3.1328125 delta=0.0078125"
    assert verdict.first_divergence.line == line
    assert [leaf.name for leaf in verdict.parted] == ["vsn_w", "q_grad"]
    assert verdict.parted[0] == v.PartedLeaf(
        name="vsn_w",
        component="vsn",
        kind="weight",
        checksum_a=3.125,
        checksum_b=3.1328125,
        fingerprint_a=f"{word(3, 1):016x}",
        fingerprint_b=f"{word(3, 1) ^ 1:016x}",
        delta=0.0078125,
        ulp=2**44,
    )
    assert verdict.growth == [
        v.GrowthPoint(step=3, leaves_parted=2, max_abs=2.0**-7, max_rel=2.0**-7 / 3.1328125),
        v.GrowthPoint(step=4, leaves_parted=1, max_abs=2.0**-6, max_rel=2.0**-6 / 4.140625),
        v.GrowthPoint(step=5, leaves_parted=1, max_abs=2.0**-5, max_rel=2.0**-5 / 5.15625),
    ]
    assert verdict.outcome[0] == v.OutcomeRow(key="total_pnl_usd", a=1000.0, b=750.0, delta=-250.0, percent=-25.0)
    assert verdict.message == "the runs part at step 3 in leaf vsn_w; P&L differs by -$250.00 (-25 %)"
    assert verdict.agreed is not None
    assert (verdict.agreed.rows, verdict.agreed.values) == (3, 20)
    hexes = [f"{word(3, 3) ^ flip:016x}" for flip in (0, 1)]
    assert v.lines(verdict) == [
        "drift: the runs part at step 3 in leaf vsn_w; P&L differs by -$250.00 (-25 %)",
        line,
        *v.lines(verdict)[2:4],
        "agreed: 20 fingerprints of 4 leaves, 3 of 6 rows throughout",
        "planted flip in a copy (row 4, encoder_output): found",
        "parted at step 3, in dataflow order: 2",
        "  leaf    component  kind      A                 B                 delta      ulp",
        "  vsn_w   vsn        weight    3.125             3.1328125         0.0078125  17,592,186,044,416",
        f"  q_grad  q          gradient  {hexes[0]}  {hexes[1]}  bits       -",
        "growth:",
        "  step  parted  largest difference  relative",
        "  3     2       0.0078125           0.00249377",
        "  4     1       0.015625            0.00377358",
        "  5     1       0.03125             0.00606061",
        "  outcome        A     B    delta  %",
        "  total_pnl_usd  1000  750  -250   -25",
        "differences in all: 5",
        "  eval_summary.json total_pnl_usd changed: 1000.0 | 750.0",
        "next:",
        f"    foxrun localize {verdict.runs[0].label} {verdict.runs[1].label}",
        "  runs it again and finds the operation, the cause and a remedy",
        f"    foxrun check --sha {'c' * 12} --seed 43 --mode 1 --steps 5",
        "  (with the same -p) tells whether the trainer parts from itself",
        f"    foxrun compare {verdict.runs[0].label} {verdict.runs[1].label} --report report.html",
        "  shows every leaf and the growth",
    ]


def test_a_parted_leaf_without_a_checksum_is_named_by_its_fingerprint(tmp_path: Path) -> None:
    def change(words: list[list[int]], lines: list[Any]) -> None:
        words[2][2] = 5

    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b", change=change))
    assert verdict.first_divergence is not None
    assert verdict.first_divergence.line == (
        f"FIRST_DIVERGENCE: step=2 leaf=encoder_output run_A={word(2, 2):016x} run_B=0000000000000005 delta=bits"
    )
    assert verdict.message == "the runs part at step 2 in leaf encoder_output; the P&L is the same"


def test_equal_checksums_of_a_parted_leaf_do_not_hide_it(tmp_path: Path) -> None:
    def change(words: list[list[int]], lines: list[Any]) -> None:
        words[2][0] = 5

    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b", change=change))
    assert verdict.first_divergence is not None
    assert verdict.first_divergence.delta == "bits"
    assert verdict.differences_total == 1


def test_a_fingerprint_taken_in_one_run_alone_differs(tmp_path: Path) -> None:
    def change(words: list[list[int]], lines: list[Any]) -> None:
        words[2][3] = 0

    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b", change=change))
    assert verdict.exit_code == 3
    assert verdict.parted[0].fingerprint_b == "0" * 16


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda row: row["metrics"].update(loss=-0.0), "leaf=loss run_A=0.0 run_B=-0.0 delta=-0.0"),
        (lambda row: row["metrics"].update(trades=0.0), "leaf=trades run_A=0 run_B=0.0 delta=bits"),
        (lambda row: row["metrics"].update(loss=None), "leaf=loss run_A=0.0 run_B=null delta=bits"),
        (lambda row: row["metrics"].update(loss=math.nan), "leaf=loss run_A=0.0 run_B=NaN delta=NaN"),
        (lambda row: row["metrics"].pop("loss"), "leaf=loss run_A=0.0 run_B=missing delta=bits"),
        (lambda row: row["metrics"].update(new=1), "leaf=new run_A=missing run_B=1 delta=bits"),
        (lambda row: row["checksums"].update(vsn_w=0.25), "leaf=vsn_w run_A=0.125 run_B=0.25 delta=0.125"),
        (lambda row: row["checksums"].pop("vsn_w"), "leaf=vsn_w run_A=0.125 run_B=missing delta=bits"),
        (lambda row: row.update(phase="eval"), 'leaf=phase run_A="train" run_B="eval" delta=bits'),
    ],
)
def test_a_change_in_a_row_alone_is_drift(tmp_path: Path, edit: Any, line: str) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b")
    edit_rows(b, lambda rows: edit(rows[0]))
    verdict = compare(a, b)
    assert verdict.exit_code == 3
    assert verdict.first_divergence is not None
    assert verdict.first_divergence.line == f"FIRST_DIVERGENCE: step=0 {line}"


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (lambda s: s.update(total_pnl_usd=999.5), "leaf=total_pnl_usd run_A=1000.0 run_B=999.5 delta=-0.5"),
        (lambda s: s.update(trades=12.0), "leaf=trades run_A=12 run_B=12.0 delta=bits"),
        (lambda s: s.pop("trades"), "leaf=trades run_A=12 run_B=missing delta=bits"),
    ],
)
def test_a_change_in_the_summary_alone_is_drift(tmp_path: Path, edit: Any, line: str) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b")
    edit_json(b / "eval_summary.json", edit)
    reseal(b)
    verdict = compare(a, b)
    assert verdict.exit_code == 3
    assert verdict.first_divergence is not None
    assert verdict.first_divergence.line == f"FIRST_DIVERGENCE: step=summary {line}"


def test_key_order_and_blanks_say_nothing_but_are_noted(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b")
    (b / "eval_summary.json").write_text(jsonio.dumps(dict(reversed(SUMMARY.items()))))
    path = b / "diag.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b",", b" , ").replace(b"\n", b"\r\n\r\n"))
    reseal(b)
    verdict = compare(a, b)
    assert verdict.exit_code == 0
    assert verdict.verdict == "identical"
    assert "some files differ only in how the same values are written: key order, blanks, digits" in verdict.notes


def test_a_repeated_key_cannot_hide_a_difference(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b")
    for run, first in ((a, 1), (b, 2)):
        for name in ("diag.jsonl", "eval_summary.json"):
            path = run / name
            path.write_text(path.read_text().replace('"trades"', f'"trades":{first},"trades"', 1))
        reseal(run)
    verdict = compare(a, b)
    assert verdict.exit_code == 3
    assert {(d.file, d.kind) for d in verdict.differences} == {
        ("diag.jsonl", "repeated key"),
        ("eval_summary.json", "repeated key"),
    }


def test_rows_missing_from_a_finished_run_are_drift(tmp_path: Path) -> None:
    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b", rows=5))
    assert verdict.exit_code == 3
    assert verdict.first_divergence is not None
    assert verdict.first_divergence.line == ("FIRST_DIVERGENCE: step=5 leaf=row run_A=present run_B=missing delta=bits")


def test_rows_missing_from_an_unfinished_run_make_it_incomplete(tmp_path: Path) -> None:
    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b", rows=5, finish=None))
    assert (verdict.verdict, verdict.exit_code) == ("incomplete", 7)
    assert "ends after 5 of 6 rows" in verdict.message


def test_a_run_cut_in_the_middle_of_a_row_is_incomplete_and_the_line_is_named(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", finish=None)
    path = b / "diag.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    verdict = compare(a, b)
    assert verdict.exit_code == 7
    assert f"{b}/diag.jsonl, line 6: the last line is cut" in verdict.message


def test_two_equally_broken_files_are_not_identical(tmp_path: Path) -> None:
    a = make(tmp_path / "a", finish=None)
    path = a / "diag.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    b = shutil.copytree(a, tmp_path / "b")
    assert compare(a, b).exit_code == 7


@pytest.mark.parametrize("name", ["diag.jsonl", "bits.u64", "leaves.json", "eval_summary.json", "dumps/x.bin"])
def test_damage_is_incomplete_and_not_drift(tmp_path: Path, name: str) -> None:
    a = make(tmp_path / "a", compared={"dumps/x.bin": b"0123456789"})
    b = make(tmp_path / "b", compared={"dumps/x.bin": b"0123456789"})
    data = bytearray((b / name).read_bytes())
    place = data.rindex(b"1") if name != "bits.u64" else 5
    data[place] ^= 2
    (b / name).write_bytes(data)
    verdict = compare(a, b)
    assert (verdict.verdict, verdict.exit_code) == ("incomplete", 7)
    assert str(b) in verdict.message
    assert name in verdict.message
    reseal(b)
    assert compare(a, b).exit_code == 3


def test_a_marked_file_that_differs_is_drift_at_its_byte(tmp_path: Path) -> None:
    a = make(tmp_path / "a", compared={"dumps/x.bin": b"0123456789"})
    b = make(tmp_path / "b", compared={"dumps/x.bin": b"01234567"})
    verdict = compare(a, b)
    assert verdict.exit_code == 3
    assert verdict.differences == [v.Difference(file="dumps/x.bin", path="byte 8", kind="changed", a="38", b="end")]


def test_files_that_are_not_marked_are_not_compared(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b")
    (b / "timing.jsonl").write_text('{"seconds": 1}\n')
    (b / "notes.txt").write_text("hello")
    assert compare(a, b).verdict == "identical"


def test_verify_finds_damage_that_both_runs_share(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b")
    for run in (a, b):
        data = bytearray((run / "bits.u64").read_bytes())
        data[9] ^= 1
        (run / "bits.u64").write_bytes(data)
    assert compare(a, b).verdict == "identical"
    verdict = compare(a, b, Options(verify=True))
    assert verdict.exit_code == 7
    assert "bits.u64" in verdict.message


def test_verify_of_a_sound_pair_says_that_hashes_agree(tmp_path: Path) -> None:
    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b"), Options(verify=True))
    assert verdict.verdict == "identical"
    assert verdict.agreed is not None
    assert verdict.agreed.values == 24
    assert "every file was verified against the sha256 in its run's manifest" in verdict.notes


def test_leaves_that_one_run_lacks_are_named_and_the_others_compared(tmp_path: Path) -> None:
    def change(words: list[list[int]], lines: list[Any]) -> None:
        for i, row in enumerate(words):
            row[:] = [word(i, 0), word(i, 1), word(i, 3)]
        words[4][2] ^= 1

    a = make(tmp_path / "a")
    b = make(tmp_path / "b", names=("env_cash", "vsn_w", "q_grad"), change=change)
    verdict = compare(a, b)
    assert verdict.exit_code == 3
    assert verdict.differences[0] == v.Difference(file="leaves.json", path="encoder_output", kind="missing in B")
    assert verdict.first_divergence is not None
    assert (verdict.first_divergence.step, verdict.first_divergence.leaf) == (4, "q_grad")
    assert verdict.agreed is not None
    assert (verdict.agreed.leaves, verdict.agreed.values) == (3, 17)


def test_a_leaf_that_is_described_otherwise_is_drift(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b")
    edit_json(b / "leaves.json", lambda value: value["leaves"][2].update(dtype="float64"))
    reseal(b)
    verdict = compare(a, b)
    assert verdict.exit_code == 3
    assert [(d.path, d.a, d.b) for d in verdict.differences] == [("encoder_output.dtype", "float32", "float64")]


def test_a_deep_difference_has_bounded_lists_and_exact_counts(tmp_path: Path) -> None:
    def change(words: list[list[int]], lines: list[Any]) -> None:
        for row in words:
            row[:] = [value ^ 1 for value in row]

    verdict = compare(make(tmp_path / "a", rows=700), make(tmp_path / "b", rows=700, change=change))
    assert verdict.differences_total == 2800
    assert len(verdict.differences) == 100
    assert [point.step for point in verdict.growth[:64]] == list(range(64))
    assert len(verdict.growth) <= 64 + 256 + 1
    assert verdict.growth[-1].step == 699


class TestIncomparable:
    @pytest.mark.parametrize(
        ("change", "path"),
        [
            ({"seed": 44}, "seed"),
            ({"mode": 2}, "mode"),
            ({"config": {"environments": 64, "window": 32, "steps": 50}}, "config.environments"),
            ({"inputs": [{"name": "book.dbn", "sha256": "e" * 64, "size": 1}]}, "inputs.book.dbn.sha256"),
            ({"code": {"tree_asked": "8" * 40, "tree_run": "8" * 40}}, "code.tree_run"),
            ({"environment": {"torch": "2.12.0"}}, "environment.torch"),
            ({"variables": {"OMP_NUM_THREADS": "2"}}, "variables.OMP_NUM_THREADS"),
        ],
    )
    def test_runs_that_differ_in_what_decides_bits(self, tmp_path: Path, change: dict[str, Any], path: str) -> None:
        manifest = manifest_of(43)
        for key, value in change.items():
            merge = key in ("code", "environment", "variables")
            manifest[key] = {**manifest[key], **value} if merge else value
        a, b = make(tmp_path / "a"), make(tmp_path / "b", manifest=manifest)
        verdict = compare(a, b)
        assert (verdict.verdict, verdict.exit_code) == ("incomparable", 7)
        assert verdict.message.startswith(f"the runs differ in {path}: ")
        assert path in [d.path for d in verdict.manifest_differences if d.matters]
        forced = compare(a, b, Options(force=True))
        assert forced.verdict == "identical"
        assert f"forced: the runs differ in {path}, so a difference proves nothing" in forced.notes

    @pytest.mark.parametrize(
        ("group", "values"),
        [
            ("environment", {"gpu_uuid": "GPU-1", "hostname": "n1"}),
            ("variables", {"FOXRUN_LEG": "b", "PYTHONHASHSEED": "7", "MALLOC_PERTURB_": "165"}),
            ("code", {"branch": "other", "commit_asked": "d" * 40}),
        ],
    )
    def test_what_does_not_decide_bits_may_differ(self, tmp_path: Path, group: str, values: dict[str, str]) -> None:
        manifest = manifest_of(43)
        manifest[group] = {**manifest[group], **values}
        verdict = compare(make(tmp_path / "a"), make(tmp_path / "b", manifest=manifest))
        assert verdict.verdict == "identical"
        assert {f"{group}.{key}" for key in values} == {d.path for d in verdict.manifest_differences}

    def test_a_run_of_another_tree_than_asked(self, tmp_path: Path) -> None:
        manifest = manifest_of(43)
        manifest["code"] = {"tree_asked": "1" * 40, "tree_run": "2" * 40}
        verdict = compare(make(tmp_path / "a", manifest=manifest), make(tmp_path / "b", manifest=manifest))
        assert verdict.exit_code == 7
        assert "ran tree 222222222222, not 111111111111 as asked" in verdict.message

    def test_another_tree_may_be_allowed(self, tmp_path: Path) -> None:
        manifest = manifest_of(43)
        manifest["code"] = {"tree_asked": "8" * 40, "tree_run": "8" * 40}
        a, b = make(tmp_path / "a"), make(tmp_path / "b", manifest=manifest)
        assert compare(a, b, Options(allow=frozenset({"tree"}))).verdict == "identical"

    def test_forced_runs_of_two_seeds_name_what_does_not_depend_on_the_seed(self, tmp_path: Path) -> None:
        def change(words: list[list[int]], lines: list[Any]) -> None:
            for row in words:
                row[0] ^= 1
                row[3] ^= 1

        a, b = make(tmp_path / "a"), make(tmp_path / "b", seed=44, change=change)
        verdict = compare(a, b, Options(force=True))
        assert verdict.exit_code == 3
        assert verdict.agreed is not None
        assert verdict.agreed.seed_independent == ["vsn_w", "encoder_output"]

    def test_without_manifests_there_is_no_claim(self, tmp_path: Path) -> None:
        a, b = make(tmp_path / "a", finish=None), make(tmp_path / "b", finish=None)
        verdict = compare(a, b)
        assert verdict.verdict == "identical"
        assert verdict.notes[:2] == [f"{x} has no manifest: comparability not checked" for x in "AB"]


class TestTolerance:
    @staticmethod
    def drifting(words: list[list[int]], lines: list[Any]) -> None:
        words[3][1] ^= 1
        lines[3]["checksums"]["vsn_w"] *= 1 + 1e-7

    def test_rtol_forgives_a_leaf_by_its_checksum(self, tmp_path: Path) -> None:
        a, b = make(tmp_path / "a"), make(tmp_path / "b", change=self.drifting)
        verdict = compare(a, b, Options(tolerance=Tolerance(rtol=1e-5)))
        assert (verdict.verdict, verdict.exit_code) == ("within_tolerance", 0)
        assert v.lines(verdict)[1] == "The runs are NOT bit-exact: they differ inside the tolerance."
        assert compare(a, b, Options(tolerance=Tolerance(rtol=1e-9))).exit_code == 3

    def test_a_leaf_without_a_checksum_is_not_forgiven(self, tmp_path: Path) -> None:
        def change(words: list[list[int]], lines: list[Any]) -> None:
            self.drifting(words, lines)
            words[5][2] ^= 1

        verdict = compare(
            make(tmp_path / "a"), make(tmp_path / "b", change=change), Options(tolerance=Tolerance(rtol=1.0))
        )
        assert verdict.exit_code == 3
        assert verdict.first_divergence is not None
        assert (verdict.first_divergence.step, verdict.first_divergence.leaf) == (5, "encoder_output")

    def test_rtol_forgives_no_metric_and_a_file_does(self, tmp_path: Path) -> None:
        a, b = make(tmp_path / "a"), make(tmp_path / "b", summary=dict(SUMMARY, total_pnl_usd=1000.5))
        assert compare(a, b, Options(tolerance=Tolerance(rtol=1.0))).exit_code == 3
        rules = Tolerance(rules=(Rule(pattern="total_*", abs=0.5),))
        assert compare(a, b, Options(tolerance=rules)).verdict == "within_tolerance"


class TestMode0:
    @pytest.mark.parametrize(
        ("pnl", "verdict"), [(1000.0, "identical"), (1000.5, "within_tolerance"), (1001.0, "drift"), (998.0, "drift")]
    )
    def test_only_the_outcome_counts(self, tmp_path: Path, pnl: float, verdict: str) -> None:
        a = make(tmp_path / "a", mode=0, names=(), summary=SUMMARY)
        b = make(tmp_path / "b", mode=0, names=(), summary=dict(SUMMARY, total_pnl_usd=pnl))
        assert compare(a, b).verdict == verdict

    def test_rows_may_differ_but_not_be_missing(self, tmp_path: Path) -> None:
        def change(words: list[list[int]], lines: list[Any]) -> None:
            lines[2]["metrics"]["loss"] = 99.0

        a = make(tmp_path / "a", mode=0, names=())
        assert compare(a, make(tmp_path / "b", mode=0, names=(), change=change)).verdict == "within_tolerance"
        assert compare(a, make(tmp_path / "c", mode=0, names=(), rows=5)).verdict == "drift"

    def test_without_an_outcome_there_is_nothing_to_tolerate_by(self, tmp_path: Path) -> None:
        def change(words: list[list[int]], lines: list[Any]) -> None:
            lines[2]["metrics"]["loss"] = 99.0

        a = make(tmp_path / "a", mode=0, names=(), summary=None)
        assert compare(a, make(tmp_path / "b", mode=0, names=(), summary=None, change=change)).verdict == "drift"


class TestNothingToCompare:
    def test_no_row_and_no_summary(self, tmp_path: Path) -> None:
        a, b = make(tmp_path / "a", rows=0, summary=None), make(tmp_path / "b", rows=0, summary=None)
        verdict = compare(a, b)
        assert (verdict.verdict, verdict.exit_code) == ("incomplete", 7)

    def test_rows_that_hold_nothing(self, tmp_path: Path) -> None:
        for name in "ab":
            (tmp_path / name).mkdir()
            (tmp_path / name / "diag.jsonl").write_text('{"step": 0}\n{"step": 1}\n')
        verdict = compare(tmp_path / "a", tmp_path / "b")
        assert verdict.exit_code == 7
        assert verdict.message == "the runs hold no fingerprint and no value: nothing was compared"

    @pytest.mark.parametrize("text", ["", "{}", "[]", "{"])
    def test_an_empty_or_broken_summary_alone(self, tmp_path: Path, text: str) -> None:
        for name in "ab":
            (tmp_path / name).mkdir()
            (tmp_path / name / "eval_summary.json").write_text(text)
        assert compare(tmp_path / "a", tmp_path / "b").exit_code == 7

    def test_an_empty_directory(self, tmp_path: Path) -> None:
        (tmp_path / "b").mkdir()
        verdict = compare(make(tmp_path / "a"), tmp_path / "b")
        assert verdict.exit_code == 7
        assert "no run was written" in verdict.message


def test_runs_of_another_trainer_are_compared_by_what_they_wrote(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "eval_summary.json").write_text('{"total_pnl_usd": 5.5, "trades": 3}')
    verdict = compare(tmp_path / "a", tmp_path / "b")
    assert verdict.verdict == "identical"
    assert verdict.agreed is not None
    assert verdict.agreed.metrics == 2
    assert verdict.agreed.planted_flip == v.PlantedFlip(row=-1, leaf="trades", found=True)


def test_a_comparison_that_misses_the_planted_flip_is_not_identical(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orchestrator.compare import findings

    monkeypatch.setattr(findings, "finds_flip", lambda *_: False)
    verdict = compare(make(tmp_path / "a"), make(tmp_path / "b"))
    assert verdict.exit_code == 7
    assert "proves nothing" in verdict.message


def test_the_same_pair_gives_the_same_verdict(tmp_path: Path) -> None:
    def change(words: list[list[int]], lines: list[Any]) -> None:
        words[1][2] ^= 1

    a, b = make(tmp_path / "a"), make(tmp_path / "b", change=change)
    assert dataclasses.asdict(compare(a, b)) == dataclasses.asdict(compare(a, b))


def test_ignored_metrics_do_not_count_and_leaves_cannot_be_ignored(tmp_path: Path) -> None:
    def change(words: list[list[int]], lines: list[Any]) -> None:
        lines[1]["metrics"]["loss"] = 7.0

    a, b = make(tmp_path / "a"), make(tmp_path / "b", change=change)
    assert compare(a, b).exit_code == 3
    assert compare(a, b, Options(ignore=("lo*",))).verdict == "identical"
    c = make(tmp_path / "c", change=lambda words, lines: words[1].__setitem__(0, 9))
    assert compare(a, c, Options(ignore=("*",))).exit_code == 3
    assert LEAVES[0] == compare(a, c, Options(ignore=("*",))).parted[0].name


@pytest.mark.parametrize("count", [1, 63, 64, 65, 66, 319, 320, 321, 322, 1000, 5000])
def test_growth_keeps_the_first_rows_and_the_last_in_order_without_repeats(count: int) -> None:
    growth = Growth()
    for step in range(count):
        growth.add(lambda step=step: v.GrowthPoint(step=step, leaves_parted=1))  # type: ignore[misc]
    steps = [point.step for point in growth.points()]
    assert steps[:64] == list(range(min(64, count)))
    assert steps == sorted(set(steps))  # type: ignore[type-var]
    assert steps[-1] == count - 1
    assert len(steps) <= 64 + 256 + 1


def test_equal_runs_of_which_one_lacks_its_manifest_are_not_identical(tmp_path: Path) -> None:
    a, b = make(tmp_path / "a"), make(tmp_path / "b", finish=None)
    verdict = compare(a, b)
    assert (verdict.verdict, verdict.exit_code) == ("incomplete", 7)
    assert "run_manifest.json: missing, though the other run has one" in verdict.message
    assert compare(a, b, Options(force=True)).verdict == "identical"
