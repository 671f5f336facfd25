"""A Hera Workflow as a plain dict and as YAML that every YAML parser reads alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import yaml

if TYPE_CHECKING:  # `foxrun get -o yaml` prints what a cluster sent, and needs no hera for it
    from hera.workflows import models as m


def to_dict(workflow: m.Workflow) -> dict[str, Any]:
    """The Workflow in Argo's own shape: strings, lists and dicts alone, keys sorted, ``name`` first."""
    plain = workflow.model_dump(mode="json", by_alias=True, exclude_none=True)
    return cast(dict[str, Any], _ordered(plain))


def to_yaml(workflow: m.Workflow | dict[str, Any]) -> str:
    """The Workflow as YAML: block style, no anchors, equal Workflows give equal text."""
    plain = _ordered(workflow) if isinstance(workflow, dict) else to_dict(workflow)
    return yaml.dump(plain, Dumper=_Dumper, sort_keys=False, default_flow_style=False, allow_unicode=True, width=120)


def _ordered(value: object) -> object:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (key != "name", key))
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    return value


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


# PyYAML writes 1e5, a commit such as 12e4567..., 0o17 or `y` without quotes; the parsers of kubectl and argo read
# those as numbers and a boolean.
_NUMBER_LIKE = re.compile(r"[-+.]?[0-9.]|[-+]?\.?(inf|nan)|[yn]\Z", re.IGNORECASE)
# Line breaks to YAML: in single quotes each would be folded into a blank; in double quotes it is escaped.
_BREAKS = re.compile("[\x85\u2028\u2029]")


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = '"' if _BREAKS.search(text) else "'" if _NUMBER_LIKE.match(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
