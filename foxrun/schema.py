"""File names, versions and the leaf of the run contract; what a manifest, a leaf and a row must be.

The JSON Schemas beside this module (foxrun/schemas) say the same for other languages; ``check_manifest`` is the part
that a reader relies on, so that no library is needed to read a run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, cast

from foxrun import jsonio
from foxrun.problems import ContractError

CONTRACT_VERSION = 1

MANIFEST = "run_manifest.json"
DIAG = "diag.jsonl"
LEAVES = "leaves.json"
BITS = "bits.u64"
SUMMARY = "eval_summary.json"
TIMING = "timing.jsonl"
DUMPS = "dumps"

PHASES = ("train", "eval")
KINDS = ("weight", "moment", "activation", "gradient", "state")
COMPLETED = "completed"  # the exit_reason of a run that did all its steps; any other text says why it did not

_HEX_64 = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True)
class Leaf:
    """One fingerprinted array of a step; its place in leaves.json is its place in the dataflow and in a row of bits.

    ``kind``: weight, moment, activation, gradient or state (what crosses steps, and outcomes). ``dtype``: the usual
    name without prefix, such as float32, bfloat16, int64, bool. ``shape``: its logical shape.
    """

    name: str
    component: str
    kind: str
    dtype: str
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ContractError(
                f"leaf {self.name!r} has the kind {self.kind!r}", remedy=f"use one of {', '.join(KINDS)}"
            )
        object.__setattr__(self, "shape", tuple(int(extent) for extent in self.shape))

    @classmethod
    def from_json(cls, value: Any) -> Leaf:
        """A leaf out of leaves.json; ContractError where a field is missing or of another type."""
        if not isinstance(value, dict):
            raise ContractError(f"a leaf is {type(value).__name__}, not an object")
        for key in ("name", "component", "kind", "dtype"):
            if not isinstance(value.get(key), str):
                raise ContractError(f"a leaf's {key!r} is {value.get(key)!r}, not a string")
        shape = value.get("shape")
        if not isinstance(shape, list) or not all(type(extent) is int and extent >= 0 for extent in shape):
            raise ContractError(f"the shape of leaf {value['name']!r} is {shape!r}, not a list of integers from 0")
        return cls(value["name"], value["component"], value["kind"], value["dtype"], tuple(shape))


def leaves_text(leaves: list[Leaf]) -> str:
    """The text of leaves.json: one leaf a line, in dataflow order."""
    lines = ",\n".join(jsonio.dumps(asdict(leaf)) for leaf in leaves)
    return f'{{"schema_version":{CONTRACT_VERSION},"leaves":[\n{lines}\n]}}\n'


def json_schema(name: str) -> dict[str, Any]:
    """One of the JSON Schemas (draft 2020-12): ``run_manifest``, ``leaves`` or ``diag_row``."""
    text = (files("foxrun") / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
    return cast(dict[str, Any], jsonio.loads(text, name=f"{name}.schema.json"))


def path_problem(name: object) -> str:
    """Why ``name`` may not be the name of a file in a run directory; empty when it may."""
    if not isinstance(name, str) or not name:
        return "is no file name"
    if any(ord(character) < 32 for character in name) or "\\" in name or len(name) > 1024:
        return "holds characters that a file name here may not have"
    if name.startswith("/") or re.match(r"[A-Za-z]:", name) or any(part in ("", ".", "..") for part in name.split("/")):
        return "leaves the run directory"
    return ""


def check_manifest(manifest: Any) -> list[str]:
    """What is wrong with the parts of a manifest that a reader relies on, one sentence each; empty when nothing."""
    if not isinstance(manifest, Mapping):
        return [f"the manifest is {type(manifest).__name__}, not an object"]
    wrong: list[str] = []
    version = manifest.get("schema_version")
    if type(version) is not int or version < 1:
        wrong.append(f"schema_version is {version!r}, not an integer from 1")
    elif version > CONTRACT_VERSION:
        wrong.append(f"schema_version is {version}; this foxrun reads up to {CONTRACT_VERSION}")
    for key, kind in (
        ("run_id", str), ("code", dict), ("config", dict), ("config_sha256", str), ("inputs", list),
        ("environment", dict), ("variables", dict), ("files", list), ("times", dict), ("exit_reason", str),
    ):  # fmt: skip
        if not isinstance(manifest.get(key), kind):
            wrong.append(f"{key} is {type(manifest.get(key)).__name__}, not {kind.__name__}")
    wrong.extend(_check_files(manifest.get("files")))
    wrong.extend(_check_blocks(manifest.get("blocks", {})))
    return wrong


def _check_files(entries: Any) -> list[str]:
    wrong: list[str] = []
    seen: set[Any] = set()
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if not isinstance(entry, dict):
            wrong.append(f"files[{index}] is {type(entry).__name__}, not an object")
            continue
        name = entry.get("name")
        if trouble := path_problem(name):
            wrong.append(f"files[{index}] names {name!r}, which {trouble}")
            continue
        if name in seen:
            wrong.append(f"files names {name!r} twice")
        seen.add(name)
        if type(entry.get("size")) is not int or entry["size"] < 0:
            wrong.append(f"the size of {name!r} is {entry.get('size')!r}, not an integer from 0")
        if not isinstance(entry.get("sha256"), str) or not _HEX_64.match(entry["sha256"]):
            wrong.append(f"the sha256 of {name!r} is not 64 hexadecimal digits")
        if not isinstance(entry.get("compared"), bool):
            wrong.append(f"compared of {name!r} is {entry.get('compared')!r}, not true or false")
    return wrong


def _check_blocks(blocks: Any) -> list[str]:
    if not isinstance(blocks, dict):
        return [f"blocks is {type(blocks).__name__}, not an object"]
    wrong = []
    for name, block in blocks.items():
        offsets = block.get("offsets") if isinstance(block, dict) else None
        hashes = block.get("sha256") if isinstance(block, dict) else None
        if (
            not isinstance(offsets, list)
            or not isinstance(hashes, list)
            or len(offsets) != len(hashes)
            or type(block.get("rows_per_block")) is not int
            or not all(type(offset) is int for offset in offsets)
            or not all(isinstance(digest, str) and _HEX_64.match(digest) for digest in hashes)
            or offsets != sorted(offsets)
            or (offsets and offsets[0] != 0)
        ):
            wrong.append(f"blocks[{name!r}] is not {{rows_per_block, offsets ascending from 0, as many sha256}}")
    return wrong
