"""Whether two runs may be compared at all: same tree, seed, mode, config, data, hardware model and versions."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.compare.values import compare_values
from orchestrator.compare.verdict import FieldDifference
from orchestrator.errors import UsageError

# Recorded for people to see; equal bits do not need them equal: two GPUs of one model, two hosts, two kernels.
ENVIRONMENT_NOT_DECIDING = ("gpu_uuid", "host*", "pid", "node*", "platform", "kernel", "time*", "date*")
# The hostile twin differs in these on purpose; FOXRUN_LEG tells the legs apart; the rest name places.
VARIABLES_NOT_DECIDING = (
    "FOXRUN_*",
    "PYTHONHASHSEED",
    "MALLOC_PERTURB_",
    "HOSTNAME",
    "PWD",
    "HOME",
    "PATH",
    "TMPDIR",
    "USER",
    "*_FILE",
    "CUDA_VISIBLE_DEVICES",
    "NVIDIA_VISIBLE_DEVICES",
)
# What a caller may allow to differ, besides a full path such as `environment.torch`.
ALLOWABLE = ("tree", "seed", "mode", "config", "inputs", "environment", "variables")
_PATHS = tuple(f"{group}." for group in ("code", "config", "inputs", "environment", "variables"))
_SHOWN_NAMES = 5
_NAME_LENGTH = 60
HARDWARE = ("environment.gpu_name", "environment.sm_count", "environment.cpu_model")


def manifest_differences(
    a: Mapping[str, Any], b: Mapping[str, Any], allow: frozenset[str] = frozenset()
) -> list[FieldDifference]:
    """Every field that differs between two manifests and says something about the runs, in a fixed order.

    `matters` marks those that make the runs incomparable, unless `allow` names their group or full path.
    """
    found = [*_fields(a, b)]
    return [
        FieldDifference(path=d.path, a=d.a, b=d.b, matters=d.matters and not _allowed(d.path, allow)) for d in found
    ]


def asked_differently(manifest: Mapping[str, Any]) -> tuple[str, str] | None:
    """(tree asked, tree run) when a run's own manifest says that it ran another tree than the one asked for."""
    code = _mapping(manifest.get("code"))
    asked, run = str(code.get("tree_asked") or ""), str(code.get("tree_run") or "")
    return (asked, run) if asked and run and asked != run else None


def check_allowed(names: frozenset[str]) -> None:
    """Raises UsageError for a name that no manifest field answers to, such as a misspelt group."""
    for name in sorted(names):
        if name not in ALLOWABLE and not name.startswith(_PATHS):
            raise UsageError(
                f"--allow {name}: not a field that could be allowed to differ",
                remedy=f"give one of {', '.join(ALLOWABLE)}, or a field such as environment.torch",
            )


def reason(differences: list[FieldDifference]) -> str:
    """The fields that make two runs incomparable, as one phrase; empty when none does."""
    paths = [_named_values(d) for d in differences if d.matters and d.path != "config_sha256"]
    if not paths:
        paths = [d.path for d in differences if d.matters]
    more = len(paths) - _SHOWN_NAMES
    return ", ".join(paths[:_SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def _named_values(difference: FieldDifference) -> str:
    """The field; of a machine's hardware also what it is called on either side."""
    if difference.path not in HARDWARE:
        return difference.path
    a, b = (str(value)[:_NAME_LENGTH] if value else "none" for value in (difference.a, difference.b))
    return f"{difference.path} ({a} | {b})"


def _allowed(path: str, allow: frozenset[str]) -> bool:
    group = path.partition(".")[0]
    names = {path, group}
    if path == "code.tree_run":
        names.add("tree")
    if path == "config_sha256":
        names.add("config")
    return bool(names & allow)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _fields(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[FieldDifference]:
    yield from _scalar("schema_version", a, b, matters=True)
    code_a, code_b = _mapping(a.get("code")), _mapping(b.get("code"))
    for key in ("commit_asked", "tree_asked", "commit_run", "tree_run", "branch"):
        yield from _scalar(key, code_a, code_b, matters=key == "tree_run", prefix="code.")
    yield from _scalar("seed", a, b, matters=True)
    yield from _scalar("mode", a, b, matters=True)
    yield from _config(a, b)
    yield from _inputs(a, b)
    yield from _named("environment", a, b, ENVIRONMENT_NOT_DECIDING)
    yield from _named("variables", a, b, VARIABLES_NOT_DECIDING)
    yield from _scalar("command", a, b, matters=False)
    yield from _scalar("exit_reason", a, b, matters=False)


def _scalar(
    key: str, a: Mapping[str, Any], b: Mapping[str, Any], *, matters: bool, prefix: str = ""
) -> Iterator[FieldDifference]:
    x, y = a.get(key), b.get(key)
    if x != y or type(x) is not type(y):
        yield FieldDifference(path=prefix + key, a=x, b=y, matters=matters)


def _config(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[FieldDifference]:
    named = False
    for difference in compare_values(_mapping(a.get("config")), _mapping(b.get("config"))):
        named = True
        yield FieldDifference(path=f"config.{difference.name}", a=difference.a, b=difference.b, matters=True)
    if a.get("config_sha256") != b.get("config_sha256"):
        # The hash alone may differ when the config is not spelled out: then it is all there is to go by.
        yield FieldDifference(
            path="config_sha256", a=a.get("config_sha256"), b=b.get("config_sha256"), matters=not named
        )


def _inputs(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[FieldDifference]:
    """Inputs by position: their names are paths that may differ, their sha256 may not."""
    x, y = _input_list(a), _input_list(b)
    for i in range(max(len(x), len(y))):
        one, other = (x[i] if i < len(x) else {}), (y[i] if i < len(y) else {})
        name = str(one.get("name") or other.get("name") or i)
        if one.get("sha256") != other.get("sha256"):
            yield FieldDifference(
                path=f"inputs.{name}.sha256", a=one.get("sha256"), b=other.get("sha256"), matters=True
            )
        elif one.get("name") != other.get("name"):
            yield FieldDifference(path=f"inputs.{i}.name", a=one.get("name"), b=other.get("name"), matters=False)


def _input_list(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    inputs = manifest.get("inputs")
    return [_mapping(item) for item in inputs] if isinstance(inputs, list) else []


def _named(
    group: str, a: Mapping[str, Any], b: Mapping[str, Any], not_deciding: tuple[str, ...]
) -> Iterator[FieldDifference]:
    x, y = _mapping(a.get(group)), _mapping(b.get(group))
    for name in [*x, *(key for key in y if key not in x)]:
        deciding = not any(fnmatch.fnmatchcase(name, pattern) for pattern in not_deciding)
        yield from _scalar(name, x, y, matters=deciding, prefix=f"{group}.")
