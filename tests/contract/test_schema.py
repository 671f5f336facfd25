"""The JSON Schemas accept what the writer writes, and refuse what the reader refuses."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from foxrun import jsonio, schema
from tests.contract.runs import write_run


def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema.json_schema(name))


def load(path: Path) -> Any:
    return jsonio.loads(path.read_bytes())


@pytest.mark.parametrize("name", ["run_manifest", "leaves", "diag_row"])
def test_they_are_json_schemas(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema.json_schema(name))


def test_they_accept_what_the_writer_writes(tmp_path: Path) -> None:
    path = write_run(tmp_path)
    validator("run_manifest").validate(load(path / "run_manifest.json"))
    validator("leaves").validate(load(path / "leaves.json"))
    for line in (path / "diag.jsonl").read_text().splitlines():
        validator("diag_row").validate(jsonio.loads(line))


BREAKS: list[tuple[tuple[str | int, ...], Any]] = [
    (("schema_version",), 2),
    (("schema_version",), "1"),
    (("run_id",), None),
    (("code",), []),
    (("config",), "x"),
    (("config_sha256",), 5),
    (("inputs",), {}),
    (("environment",), None),
    (("variables",), []),
    (("times",), "now"),
    (("exit_reason",), 0),
    (("files",), {}),
    (("files", 0), "bits.u64"),
    (("files", 0, "name"), "../bits.u64"),
    (("files", 0, "name"), "/etc/passwd"),
    (("files", 0, "name"), "a/../../b"),
    (("files", 0, "name"), "a/./b"),
    (("files", 0, "name"), "a//b"),
    (("files", 0, "name"), "a/"),
    (("files", 0, "name"), ".."),
    (("files", 0, "name"), "C:\\x"),
    (("files", 0, "name"), "C:x"),
    (("files", 0, "name"), "a\nb"),
    (("files", 0, "name"), ""),
    (("files", 0, "name"), 5),
    (("files", 0, "size"), -1),
    (("files", 0, "size"), 1.5),
    (("files", 0, "size"), "5"),
    (("files", 0, "sha256"), "A" * 64),
    (("files", 0, "sha256"), "a" * 63),
    (("files", 0, "compared"), 1),
    (("blocks",), []),
    (("blocks", "bits.u64"), None),
    (("blocks", "bits.u64", "offsets"), None),
    (("blocks", "bits.u64", "sha256", 0), "x"),
]


@pytest.mark.parametrize(("path", "value"), BREAKS, ids=[f"{'/'.join(map(str, p))}={v!r}" for p, v in BREAKS])
def test_schema_and_reader_refuse_the_same_manifests(tmp_path: Path, path: tuple[str | int, ...], value: Any) -> None:
    manifest = load(write_run(tmp_path) / "run_manifest.json")
    assert schema.check_manifest(manifest) == []
    broken = copy.deepcopy(manifest)
    where = broken
    for part in path[:-1]:
        where = where[part]
    where[path[-1]] = value
    assert not validator("run_manifest").is_valid(broken)
    wrong = schema.check_manifest(broken)
    assert len(wrong) == 1
    assert str(path[-1]) in wrong[0] or str(path[0]) in wrong[0]


@pytest.mark.parametrize("name", ["a", "dumps/step-1/x.bin", "..a", "a..", ".hidden", "a b", "ü", "a:b", "..."])
def test_names_that_stay_in_the_directory_are_fine(tmp_path: Path, name: str) -> None:
    manifest = load(write_run(tmp_path) / "run_manifest.json")
    manifest["files"][0]["name"] = name
    accepted = validator("run_manifest").is_valid(manifest)
    assert accepted == (schema.path_problem(name) == "")
    assert accepted == (name != "a:b")


@pytest.mark.parametrize(
    "row",
    [
        {"step": -1, "phase": "train", "checksums": {}, "metrics": {}},
        {"step": 0, "phase": "test", "checksums": {}, "metrics": {}},
        {"step": 0, "phase": "train", "checksums": {"w": "nan"}, "metrics": {}},
        {"step": 0, "phase": "train", "checksums": {}},
        {"step": 0, "phase": "train", "checksums": {}, "metrics": {}, "time": 1},
    ],
)
def test_rows_that_the_contract_does_not_allow(row: dict[str, Any]) -> None:
    assert not validator("diag_row").is_valid(row)
