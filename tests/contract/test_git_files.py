"""Without the git program a checkout has the tree hash that git would give it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from foxrun import git
from foxrun.git_files import head_of_files, root_of, tree_of_files


def run(repo: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"]
    return subprocess.run(["git", *who, *words], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


def tree(repo: Path) -> str:
    return run(repo, "rev-parse", "HEAD^{tree}")


@pytest.fixture(params=["sha1", "sha256"])
def repo(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Names in an order that git has its own mind about, an executable, links, all bytes, directories without files."""
    top = tmp_path / "repository"
    top.mkdir()
    run(top, "init", "-q", f"--object-format={request.param}")
    for name in ("a/inner", "a.b", "a-b", "ab", "a0/x/y", "Ü/ñ 🦊", "empty file", "sub/.hidden"):
        file = top / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"" if name == "empty file" else name.encode() + bytes(range(256)) + b"\r\n")
    (top / "a.b").chmod(0o755)
    (top / "link").symlink_to("a/inner")
    (top / "to-directory").symlink_to("a")
    (top / "broken").symlink_to("nowhere")
    (top / os.fsdecode(b"not-utf8-\xff")).write_bytes(b"x")
    (top / "no" / "files" / "below").mkdir(parents=True)
    run(top, "add", "--all")
    run(top, "commit", "-q", "-m", "all kinds")
    return top


def test_it_is_the_commits_tree(repo: Path) -> None:
    assert tree_of_files(repo) == tree(repo) == git.tree_hash(repo)


def test_changes_count_and_byte_code_does_not(repo: Path, tmp_path: Path) -> None:
    before = tree_of_files(repo)
    (repo / "a" / "__pycache__").mkdir()
    (repo / "a" / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"x")
    (repo / "out").mkdir()
    (repo / "out" / "run").write_bytes(b"x")
    assert tree_of_files(repo, exclude=[repo / "out"]) == before
    (repo / "out" / "run").unlink()
    (repo / "ab").chmod(0o755)
    changed = tree_of_files(repo)
    assert changed != before and changed == git.tree_hash(repo)


def test_a_submodule_is_the_commit_that_the_index_names(repo: Path, tmp_path: Path) -> None:
    if "sha256" in (repo / ".git" / "config").read_text().lower():
        pytest.skip("the index of a SHA-256 repository is not read")
    run(repo, "submodule", "add", "-q", str(repo), "third_party/again")
    run(repo, "commit", "-q", "-m", "a submodule")
    assert tree_of_files(repo) == tree(repo)


def test_an_empty_repository_has_the_empty_tree(tmp_path: Path) -> None:
    run(tmp_path, "init", "-q")
    assert tree_of_files(tmp_path) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_a_checkout_in_an_image_without_git_is_not_taken_for_the_image(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = tree(repo)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("FOXRUN_TREE_RUN", "b" * 40)
    assert git.tree_hash(repo / "a") == expected
    assert root_of(repo / "a") == repo
    assert git.tree_hash(tmp_path / "bin") == "b" * 40


@pytest.mark.parametrize("damage", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\7cut", b"DIRC\0\0\0\4\0\0\0\1" + bytes(80)])
def test_an_index_that_cannot_be_read_names_no_submodule(tmp_path: Path, damage: bytes) -> None:
    run(tmp_path, "init", "-q")
    (tmp_path / "file").write_bytes(b"x")
    before = tree_of_files(tmp_path)
    (tmp_path / ".git" / "index").write_bytes(damage)
    assert tree_of_files(tmp_path) == before


@pytest.mark.parametrize("how", ["branch", "packed", "detached"])
def test_the_commit_of_a_checkout(repo: Path, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if how == "packed":
        run(repo, "pack-refs", "--all")
    if how == "detached":
        run(repo, "checkout", "-q", "--detach")
    head = run(repo, "rev-parse", "HEAD")
    assert head_of_files(repo) == head == git.commit_run(repo / "a")
    monkeypatch.setenv("PATH", str(repo / "no"))
    monkeypatch.setenv("FOXRUN_COMMIT_RUN", "d" * 40)  # of the image; the checkout in it is another
    assert git.commit_run(repo / "a") == head


def test_uncommitted_changes_have_no_commit(repo: Path) -> None:
    (repo / "ab").write_text("changed")
    assert git.commit_run(repo) == ""
    assert git.commit_run(repo, tree(repo)) == run(repo, "rev-parse", "HEAD")


def test_a_repository_without_a_commit_and_a_damaged_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "init", "-q")
    assert (git.commit_run(tmp_path), head_of_files(tmp_path)) == ("", "")
    for text in ("", "ref: refs/heads/../../../etc/passwd", "nonsense", "ref: "):
        (tmp_path / ".git" / "HEAD").write_text(text)
        assert head_of_files(tmp_path) == ""
