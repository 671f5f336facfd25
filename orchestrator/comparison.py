"""Use case: open two runs or two metric files, compare them, and write verdict.json when asked.

The only place of the comparison that opens files; what it finds is `orchestrator.compare`'s.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from foxrun import jsonio
from foxrun.files import write_atomic
from foxrun.problems import ContractError
from foxrun.reader import Run, Source, open_run
from orchestrator.compare import verdict as v
from orchestrator.compare.comparable import check_allowed
from orchestrator.compare.legs import Side
from orchestrator.compare.policy import Options
from orchestrator.compare.tolerance import Rule, Tolerance, checked_rtol, parse_tolerance
from orchestrator.errors import InfrastructureError, UsageError
from orchestrator.places import DIRECTORY, FILE, NOTHING, Found, Places
from orchestrator.yaml_input import read_text

MARKS = ("diag.jsonl", "eval_summary.json", "bits.u64", "leaves.json", "run_manifest.json")


def compare(
    a: Path | str,
    b: Path | str,
    options: Options | None = None,
    *,
    verdict_file: Path | str | None = None,
    places: Places | None = None,
) -> v.Verdict:
    """The verdict on two runs, or on two metric files; written to `verdict_file` atomically when given.

    Each is a path, or an address on S3 (s3://bucket/prefix), which `places` knows how to reach.

    Raises:
        UsageError: a path that does not exist (outside a workflow), a directory against a file, a file of another kind.
        InfrastructureError: a file cannot be opened, S3 cannot be read, or verdict.json not written.
    """
    verdict = _compare(a, b, options or Options(), places or Places())
    if verdict_file is not None:
        write_verdict(verdict, verdict_file)
    return verdict


def compare_three(
    a: Path | str, b: Path | str, c: Path | str, options: Options, *, status_c: str = "", places: Places | None = None
) -> v.Verdict:
    """The verdict on A and B; where it is drift, C says which of them is the odd one out.

    Raises what ``compare`` raises.
    """
    from orchestrator.compare.tie import with_tie_break

    places = places or Places()
    pair = _compare(a, b, options, places)
    if pair.verdict != v.DRIFT:
        return pair
    with_a = _compare(a, c, dataclasses.replace(options, status_b=status_c), places, "AC")
    with_b = _compare(b, c, dataclasses.replace(options, status_a=options.status_b, status_b=status_c), places, "BC")
    return with_tie_break(pair, with_a, with_b)


def _compare(a: Path | str, b: Path | str, options: Options, places: Places, letters: str = "AB") -> v.Verdict:
    check_allowed(options.allow)
    found_a, found_b = places.find(a), places.find(b)
    in_workflow = bool(options.status_a or options.status_b)
    for found in (found_a, found_b):
        if found.kind == NOTHING and not in_workflow:
            what = "nothing is stored there" if found.remote else "there is no such file or directory"
            raise UsageError(f"{found.label}: {what}", remedy="check the address" if found.remote else "check the path")
    if found_a.kind == found_b.kind == FILE:
        verdict = _compare_files(found_a, found_b, options)
    else:
        for found, other in ((found_a, found_b), (found_b, found_a)):
            if found.kind == FILE and other.kind == DIRECTORY:
                raise UsageError(
                    f"{found.label} is a file and {other.label} is a directory",
                    remedy="compare two run directories, or two metric files",
                )
        from orchestrator.compare.runs import compare_runs

        verdict = compare_runs(
            open_side(letters[0], found_a.run, options.status_a),
            open_side(letters[1], found_b.run, options.status_b),
            options,
        )
    return verdict


def open_side(letter: str, where: Path | str | Source, status: str = "") -> Side:
    """One side of a comparison: the run that a path or a source holds, or why there is none."""
    remote = not isinstance(where, (str, Path))
    label = str(where) if isinstance(where, (str, Path)) else where.label
    try:
        run: Run = open_run(where, lazy=remote)
    except ContractError as error:
        return Side(letter=letter, label=label, absent=error, status=status, remote=remote)
    return Side(letter=letter, label=run.label, run=run, status=status, remote=remote)


def write_verdict(verdict: v.Verdict, path: Path | str) -> None:
    """Write verdict.json: the whole Verdict, all at once or not at all. InfrastructureError when the disk refuses."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, jsonio.pretty(v.as_dict(verdict)))
    except OSError as error:
        raise InfrastructureError(
            f"{path}: cannot be written: {error}", remedy="free space, or choose another place"
        ) from error


def read_verdict(path: Path | str) -> v.Verdict:
    """The Verdict in a verdict.json. Raises UsageError that names the file when it holds none."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", remedy="check the path") from error
    return parse_verdict(data, str(path))


def parse_verdict(data: bytes, label: str) -> v.Verdict:
    """The Verdict in the bytes of a verdict.json. Raises UsageError that names it when they hold none."""
    try:
        return v.from_dict(jsonio.loads(data, name=label))
    except (ContractError, ValueError) as error:
        raise UsageError(
            f"{label}: not a verdict: {error}", remedy="foxrun compare A B --verdict FILE writes one"
        ) from error


def read_tolerance(file: Path | str | None = None, text: str = "", rtol: float | None = None) -> Tolerance:
    """The tolerance that a file, a JSON text and --rtol give together. Raises UsageError for what it cannot take."""
    rules: tuple[Rule, ...] = ()
    if file is not None:
        rules += parse_tolerance(read_text(Path(file)), str(file))
    if text:
        rules += parse_tolerance(text, "--tolerance-json")
    return Tolerance(rules=rules, rtol=None if rtol is None else checked_rtol(rtol))


def _compare_files(found_a: Found, found_b: Found, options: Options) -> v.Verdict:
    from orchestrator.compare.metric_table import JSON_LINES, parse_metrics
    from orchestrator.compare.metrics import compare_metrics

    contents = []
    labels = (found_a.label, found_b.label)
    for found in (found_a, found_b):
        try:
            with found.open() as stream:
                contents.append(stream.read())
        except ContractError as error:
            summaries = [v.RunSummary(label=found_a.label), v.RunSummary(label=found_b.label)]
            return v.make(
                v.INCOMPLETE, f"{found.label}: {error.what}", next=error.remedy, subject="metrics", runs=summaries
            )
        except OSError as error:
            raise InfrastructureError(
                f"{found.label}: cannot be read: {error.strerror}", remedy="check the disk"
            ) from error
    a, b = (parse_metrics(data, label) for data, label in zip(contents, labels, strict=True))
    if a.format != b.format and JSON_LINES in (a.format, b.format):  # one line of JSON may be JSON lines of one row
        a, b = (
            parse_metrics(data, label, as_lines=table.one_line)
            for data, label, table in zip(contents, labels, (a, b), strict=True)
        )
    return compare_metrics(a, b, tolerance=options.tolerance, ignore=options.ignore)
