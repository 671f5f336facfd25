from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.errors import InfrastructureError, UsageError
from orchestrator.stores.directory import DirectoryStore, UnsafePath


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


@pytest.mark.parametrize("key", ["", "/etc/passwd", "../x", "a/../../x", "a/..", "a\0b"])
def test_a_key_never_leaves_the_store(store: DirectoryStore, key: str) -> None:
    for call in (store.path, store.exists, store.delete):
        with pytest.raises(UnsafePath, match="is not a relative path inside the store"):
            call(key)


def test_put_replaces_a_file_or_a_directory(store: DirectoryStore, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    (one / "f").write_text("1")
    two.write_text("2")
    for source, read in ((one, "f"), (two, ""), (one, "f")):
        store.put(source, "a/b")
        assert (store.path("a/b") / read if read else store.path("a/b")).read_text() == ("1" if read else "2")
    assert [p.name for p in store.path("a").iterdir()] == ["b"]
    store.delete("a")
    assert not store.exists("a/b")


def test_put_that_fails_leaves_what_was_there(store: DirectoryStore, tmp_path: Path) -> None:
    (tmp_path / "good").write_text("1")
    store.put(tmp_path / "good", "a/b")
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "f").write_text("x")
    os.mkfifo(bad / "pipe")
    with pytest.raises(UnsafePath, match="is neither a file nor a directory"):
        store.put(bad, "a/b")
    assert store.path("a/b").read_text() == "1"
    assert [p.name for p in store.path("a").iterdir()] == ["b"]


def test_fetch_gives_a_copy_and_inputs_as_they_are(store: DirectoryStore, tmp_path: Path) -> None:
    source = tmp_path / "x.dbn"
    source.write_bytes(b"abc")
    store.put(source, "run")
    key = store.put_input(source)
    assert key == "inputs/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad/x.dbn"
    store.fetch("run", tmp_path / "p/run")
    store.fetch(key, tmp_path / "p/input")
    (tmp_path / "p/run").write_text("changed")
    assert store.path("run").read_bytes() == b"abc"
    assert (tmp_path / "p/input").stat().st_ino == store.path(key).stat().st_ino


def test_two_names_of_one_content_are_two_inputs(store: DirectoryStore, tmp_path: Path) -> None:
    for name in ("a", "ü 💥'\""):
        (tmp_path / name).write_text("same")
        assert store.put_input(tmp_path / name).endswith(f"/{name}")


@pytest.mark.parametrize(
    ("name", "message"), [("gone", "does not exist"), (".", "is a directory"), ("{{x}}", "is a tag to Argo")]
)
def test_what_is_no_input(store: DirectoryStore, tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "{{x}}").write_text("x")
    with pytest.raises(UsageError, match=message):
        store.put_input(tmp_path / name)
    assert not store.root.exists()


def test_a_store_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("a file")
    (tmp_path / "x").write_text("x")
    with pytest.raises(InfrastructureError, match=r"cannot store .*: ") as caught:
        DirectoryStore(tmp_path / "store").put_input(tmp_path / "x")
    assert caught.value.remedy == "make room or mend the disk, then retry"
