"""Goldens: recorded from twins that agree, checked, explained; a change needs a reason; its commit is found."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Place


def the_golden(repo: Place) -> Path:
    (file,) = (repo.directory / "goldens").rglob("*.golden.json")
    return file


def change_bits(repo: Place) -> None:
    file = repo.directory / "train.py"
    file.write_text(file.read_text().replace("0.1 * weight + 1.0", "0.1 * weight + 1.0 + 2.0**-50"))


def test_a_golden_is_recorded_and_the_same_bits_pass(repo: Place) -> None:
    done = repo("golden", "record")
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == f"golden: {the_golden(repo)} new"
    value = json.loads(the_golden(repo).read_text())
    assert (value["mode"], value["seed"], value["steps"]) == (1, 5, 3)
    assert [row[:3] for row in value["leaves"]] == [["w", "model", "weight"], ["w_grad", "model", "gradient"]]
    assert [r["reason"] for r in value["recordings"]] == ["first recording"]
    before = the_golden(repo).read_bytes()
    again = repo("golden", "record")
    assert again.out.splitlines()[-1].endswith("unchanged: these are the bits that it holds already")
    assert the_golden(repo).read_bytes() == before
    checked = repo("golden", "check")
    assert (checked.code, checked.out.split(":")[0]) == (0, "identical")


def test_changed_bits_are_drift_and_recording_them_needs_a_reason_that_is_kept(repo: Place) -> None:
    repo("golden", "record", "--reason", "the paper's figures")
    change_bits(repo)
    checked = repo("golden", "check")
    assert checked.code == 3
    assert "FIRST_DIVERGENCE: step=2 leaf=w_grad run_A=" in checked.out
    refused = repo("golden", "record")
    assert (refused.code, "say why they change: --reason" in refused.err) == (2, True)
    assert "the paper's figures" in refused.err
    assert repo("golden", "record", "--reason", "a bias was missing").code == 0
    assert [r["reason"] for r in json.loads(the_golden(repo).read_text())["recordings"]] == [
        "the paper's figures",
        "a bias was missing",
    ]
    assert "a bias was missing" in repo("golden", "list").out
    told = repo("golden", "explain").out
    assert told.index("the paper's figures") < told.index("a bias was missing")


def test_a_longer_run_is_held_against_the_golden_of_its_first_steps(repo: Place) -> None:
    repo("golden", "record")
    done = repo("submit", "--worktree", "--no-gate", "--steps", "9", "--name", "long", "-o", "json")
    assert done.code == 0, done.err
    run = next((repo.home / "artifacts").rglob("run_manifest.json")).parent
    checked = repo("golden", "check", "--run", str(run), "-o", "json")
    assert (checked.code, checked.json["verdict"], checked.json["subject"]) == (0, "identical", "golden")


def test_another_configuration_has_no_golden_and_is_told_the_nearest(repo: Place) -> None:
    repo("golden", "record")
    done = repo("golden", "check", "-p", "lr=3")
    assert done.code == 7
    assert "the nearest differs in config_sha256" in done.out
    assert repo("golden", "check", "-p", "lr=3", "--if-recorded").code == 0
    run = next((repo.home / "checks").rglob("run_manifest.json"), None)
    assert run is not None
    newest = max((repo.home / "checks").iterdir()) / "twin1"
    told = repo("golden", "explain", str(next(newest.iterdir())))
    assert "    lr: None, the run has 3" in told.out


def test_twins_that_part_record_nothing(repo: Place) -> None:
    done = repo("golden", "record", "-p", "source=urandom")
    assert done.code == 4
    assert not (repo.directory / "goldens").exists()


def test_a_damaged_golden_is_named(repo: Place) -> None:
    repo("golden", "record")
    the_golden(repo).write_text('{"golden": 1}\n')
    done = repo("golden", "list")
    assert (done.code, "is no golden" in done.err, "Traceback" in done.err) == (7, True, False)


def history(repo: Place, *, changed: int, broken: tuple[int, ...]) -> list[str]:
    commits = [repo.git("rev-parse", "HEAD")]
    train = repo.directory / "train.py"
    for number in range(1, 31):
        good = train.read_text()
        if number == changed:
            change_bits(repo)
        if number in broken:
            train.write_text(good + "\n)\n")
        (repo.directory / "notes.txt").write_text(f"{number}\n")
        repo.git("add", ".")
        repo.git("commit", "-q", "-m", f"change {number}")
        commits.append(repo.git("rev-parse", "HEAD"))
        if number in broken:
            train.write_text(good)
    return commits


def test_bisect_names_the_commit_that_changed_bits_in_at_most_six_pairs(repo: Place) -> None:
    commits = history(repo, changed=17, broken=(11, 20))
    done = repo("golden", "bisect", commits[0], "HEAD", "-o", "json")
    assert done.code == 3, done.err
    assert done.json["bisect"]["suspects"] == [commits[17]]
    assert done.json["bisect"]["pairs"] <= 6
    assert {t["commit"] for t in done.json["bisect"]["tried"] if t["result"] == "skipped"} <= {commits[11], commits[20]}
    assert done.json["message"] == f"{commits[17][:12]} (change 17) is the first commit that changed bits"
    first = done.json["first_divergence"]
    assert (first["step"], first["leaf"]) == (0, "w_grad")


def test_bisect_says_when_nothing_changed_and_when_the_ends_are_wrong(repo: Place) -> None:
    (repo.directory / "notes.txt").write_text("1\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "notes")
    same = repo("golden", "bisect", "HEAD~1", "HEAD")
    assert (same.code, "have the same bits: nothing to find" in same.out) == (0, True)
    wrong = repo("golden", "bisect", "HEAD", "HEAD~1")
    assert (wrong.code, "give the good commit first" in wrong.err) == (2, True)
    assert repo("golden", "bisect", "nowhere").code == 2


def test_bisect_refuses_a_commit_that_is_not_deterministic(repo: Place) -> None:
    change_bits(repo)
    repo.git("commit", "-q", "-a", "-m", "other bits")
    (repo.directory / "notes.txt").write_text("1\n")
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "notes")
    done = repo("golden", "bisect", "HEAD~2", "HEAD", "-p", "source=urandom")
    assert (done.code, "is not deterministic" in done.err) == (2, True)


def test_a_training_is_held_against_the_golden_of_its_commit(repo: Place) -> None:
    assert repo("golden", "record").code == 0
    repo.git("add", ".")
    repo.git("commit", "-q", "-m", "a golden")
    good = repo("submit", "--name", "good", "-o", "json")
    assert (good.code, good.json["verdict"]) == (0, "identical")
    assert "golden: 2 leaves at step 2, and all rows before, are those of the golden" in good.json["notes"]
    change_bits(repo)
    repo.git("commit", "-q", "-a", "-m", "other bits")
    bad = repo("submit", "--name", "bad", "-o", "json")
    assert (bad.code, bad.json["verdict"], bad.json["subject"]) == (3, "drift", "golden")
    assert bad.json["first_divergence"]["leaf"] == "w_grad"
    other = repo("submit", "--name", "other", "--seed", "6", "-o", "json")
    assert (other.code, other.json["verdict"]) == (0, "identical")
