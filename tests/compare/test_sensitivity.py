from pathlib import Path

from benchmarks.mutations import CHANGES
from benchmarks.sensitivity import measure


def test_single_changes_are_found_and_clean_pairs_raise_no_alarm(tmp_path: Path) -> None:
    result = measure(tmp_path, count=3 * len(CHANGES), seed=7, trainer=False)
    assert (result["found"], result["alarms"]) == (3 * len(CHANGES), 0)
