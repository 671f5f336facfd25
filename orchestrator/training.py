"""What a trainer is called with: options, ``-p``, a parameter file and settings put together, and its command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.errors import UsageError
from orchestrator.settings import Settings, did_you_mean, parse_value

# `-p` of these names means the option of the same name; everything else is the trainer's.
OPTIONS = ("seed", "mode", "steps", "eval_steps")
SYNTHETIC = "synthetic"


@dataclass(frozen=True, kw_only=True)
class Training:
    """The trainer's part of a request, once ``-p``, the parameter file, options and settings are put together."""

    seed: int
    mode: int
    steps: int
    eval_steps: int
    parameters: dict[str, str]
    data: Path | None


def training_of(
    settings: Settings,
    *,
    parameters: Sequence[str] = (),
    parameter_file: Path | None = None,
    **given: int | None,
) -> Training:
    """Put the trainer's parameters together: options win over ``-p``, ``-p`` over the file, the file over settings.

    Raises:
        UsageError: a value that cannot be, an option that contradicts ``-p``, a file that cannot be read.
    """
    merged = read_parameter_file(parameter_file) if parameter_file else {}
    merged |= _pairs(parameters)
    values: dict[str, Any] = {name: getattr(settings, name) for name in OPTIONS}
    for name in OPTIONS:
        for spelling in {name, name.replace("_", "-")} & merged.keys():
            values[name] = parse_value(name, merged.pop(spelling), f"-p {spelling}")
            if given.get(name) not in (None, values[name]):
                raise UsageError(
                    f"--{name.replace('_', '-')} {given[name]} and -p {spelling}={values[name]} contradict each other",
                    remedy="give one of them",
                )
        if given.get(name) is not None:
            values[name] = given[name]
    if values["steps"] < 1:
        raise UsageError("--steps 0: a run of no steps proves nothing", remedy="give 1 step or more")
    for key, value in merged.items():
        if "{{" in value or "{{" in key:
            raise UsageError(
                f"-p {key}: a value that contains '{{{{' cannot be passed: Argo takes it for a template tag",
                remedy="put a space between the braces, or pass the value in a file by -p data=FILE",
            )
    data = _data_file(merged.pop("data", SYNTHETIC))
    return Training(parameters=merged, data=data, **values)


def _pairs(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise UsageError(f"-p {text!r} is not KEY=VALUE", remedy="for example: -p envs=16")
        if key in found and found[key] != value:
            raise UsageError(f"-p {key} is given twice, with different values", remedy="give it once")
        found[key] = value
    return found


def read_parameter_file(file: Path) -> dict[str, str]:
    """Parameters from a YAML or JSON object: scalars as written, anything nested as JSON. Raises UsageError."""
    import yaml

    from orchestrator import yaml_input

    text = yaml_input.read_text(file)
    try:
        if text.lstrip().startswith("{") and (of_json := _of_json(text)) is not None:
            return of_json
        root = yaml_input.compose(text)
        if not isinstance(root, yaml.MappingNode):
            raise UsageError(f"{file} must hold an object of parameters", remedy="for example: envs: 16")
        found: dict[str, str] = {}
        for key, value in root.value:
            if not isinstance(key, yaml.ScalarNode):
                raise UsageError(
                    f"{file}, line {key.start_mark.line + 1}: a name is no text", remedy="write name: value"
                )
            name = str(key.value)
            if name in found:
                raise UsageError(f"{file}, line {key.start_mark.line + 1}: {name!r} is there twice", remedy="keep one")
            # As written: 1e-3 must stay 1e-3, and 010 must not become 8.
            found[name] = value.value if isinstance(value, yaml.ScalarNode) else _as_json(value)
        return found
    except (yaml_input.NotYaml, yaml.YAMLError, ValueError, RecursionError) as error:
        raise UsageError(f"{file} is neither YAML nor JSON: {' '.join(str(error).split())}", remedy="mend it") from None


def _of_json(text: str) -> dict[str, str] | None:
    """The same of JSON, which YAML readers take for YAML but for some escapes; None when it is no JSON."""
    try:
        typed, written = json.loads(text), json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return None
    return {
        key: written[key] if isinstance(written[key], str) else json.dumps(value, ensure_ascii=False)
        for key, value in typed.items()
    }


def _as_json(node: Any) -> str:
    import yaml

    return json.dumps(yaml.safe_load(yaml.serialize(node, Dumper=yaml.SafeDumper)), ensure_ascii=False)


def _data_file(value: str) -> Path | None:
    if value == SYNTHETIC:
        return None
    file = Path(value).expanduser()
    if not file.is_file():
        what = "is a directory" if file.is_dir() else "is not there"
        near = did_you_mean(file.name, [p.name for p in file.parent.iterdir()]) if file.parent.is_dir() else ""
        raise UsageError(f"-p data={value}: the file {what}{near}", remedy="give a file, or -p data=synthetic")
    return file


def command_of(text: str) -> tuple[str, ...]:
    """A command line as words, as a shell would part them. Raises UsageError."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"the trainer's command {text!r} cannot be read: {error}", remedy="close the quote") from None
    if not words:
        raise UsageError("the trainer's command is empty", remedy='for example: --trainer "python -m trainer"')
    return tuple(words)
