"""Use case: open two runs or two metric files, compare them, and write verdict.json when asked.

The only place of the comparison that opens files; what it finds is `orchestrator.compare`'s.
"""

from __future__ import annotations

from pathlib import Path

from foxrun import jsonio
from foxrun.files import open_input, write_atomic
from foxrun.problems import ContractError
from foxrun.reader import Run, open_run
from orchestrator.compare import verdict as v
from orchestrator.compare.comparable import check_allowed
from orchestrator.compare.legs import Side
from orchestrator.compare.policy import Options
from orchestrator.compare.tolerance import Rule, Tolerance, checked_rtol, parse_tolerance
from orchestrator.errors import InfrastructureError, UsageError

MARKS = ("diag.jsonl", "eval_summary.json", "bits.u64", "leaves.json", "run_manifest.json")


def compare(
    a: Path | str, b: Path | str, options: Options | None = None, *, verdict_file: Path | str | None = None
) -> v.Verdict:
    """The verdict on two run directories, or on two metric files; written to `verdict_file` atomically when given.

    Raises:
        UsageError: a path that does not exist (outside a workflow), a directory against a file, a file of another kind.
        InfrastructureError: a file cannot be opened, or verdict.json not written.
    """
    options = options or Options()
    check_allowed(options.allow)
    path_a, path_b = Path(a), Path(b)
    in_workflow = bool(options.status_a or options.status_b)
    for path in (path_a, path_b):
        if not path.exists() and not in_workflow:
            raise UsageError(f"{path}: there is no such file or directory", remedy="check the path")
    if path_a.is_file() and path_b.is_file():
        verdict = _compare_files(path_a, path_b, options)
    else:
        for path, other in ((path_a, path_b), (path_b, path_a)):
            if path.is_file() and other.is_dir():
                raise UsageError(
                    f"{path} is a file and {other} is a directory",
                    remedy="compare two run directories, or two metric files",
                )
        from orchestrator.compare.runs import compare_runs

        verdict = compare_runs(
            open_side("A", path_a, options.status_a), open_side("B", path_b, options.status_b), options
        )
    if verdict_file is not None:
        write_verdict(verdict, verdict_file)
    return verdict


def open_side(letter: str, where: Path | str, status: str = "") -> Side:
    """One side of a comparison: the run that the path holds, or why there is none."""
    try:
        run: Run = open_run(where)
    except ContractError as error:
        return Side(letter=letter, label=str(where), absent=error, status=status)
    return Side(letter=letter, label=run.label, run=run, status=status)


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
        return v.from_dict(jsonio.loads(Path(path).read_bytes(), name=str(path)))
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}", remedy="check the path") from error
    except (ContractError, ValueError) as error:
        raise UsageError(
            f"{path}: not a verdict: {error}", remedy="foxrun compare A B --verdict FILE writes one"
        ) from error


def read_tolerance(file: Path | str | None = None, text: str = "", rtol: float | None = None) -> Tolerance:
    """The tolerance that a file, a JSON text and --rtol give together. Raises UsageError for what it cannot take."""
    rules: tuple[Rule, ...] = ()
    if file is not None:
        try:
            content = Path(file).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{file}: cannot be read: {error}", remedy="give a YAML or JSON file") from error
        rules += parse_tolerance(content, str(file))
    if text:
        rules += parse_tolerance(text, "--tolerance-json")
    return Tolerance(rules=rules, rtol=None if rtol is None else checked_rtol(rtol))


def _compare_files(path_a: Path, path_b: Path, options: Options) -> v.Verdict:
    from orchestrator.compare.metric_table import JSON_LINES, parse_metrics
    from orchestrator.compare.metrics import compare_metrics

    contents = []
    for path in (path_a, path_b):
        try:
            with open_input(path) as stream:
                contents.append(stream.read())
        except ContractError as error:
            summaries = [v.RunSummary(label=str(path_a)), v.RunSummary(label=str(path_b))]
            return v.make(v.INCOMPLETE, f"{path}: {error.what}", next=error.remedy, subject="metrics", runs=summaries)
        except OSError as error:
            raise InfrastructureError(f"{path}: cannot be read: {error.strerror}", remedy="check the disk") from error
    a, b = (parse_metrics(data, str(path)) for data, path in zip(contents, (path_a, path_b), strict=True))
    if a.format != b.format and JSON_LINES in (a.format, b.format):  # one line of JSON may be JSON lines of one row
        a, b = (
            parse_metrics(data, str(path), as_lines=table.one_line)
            for data, path, table in zip(contents, (path_a, path_b), (a, b), strict=True)
        )
    return compare_metrics(a, b, tolerance=options.tolerance, ignore=options.ignore)
