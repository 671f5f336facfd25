"""Revisions, tree hashes of files as they are, and worktrees, on real repositories."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from foxrun import ContractError, git

ROOT = Path(__file__).parents[2]


def run(directory: Path, *arguments: str) -> str:
    identity = {
        "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b",
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip
    command = ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=directory, env=os.environ | identity, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def commit(directory: Path, message: str = "change") -> str:
    run(directory, "add", "--all")
    run(directory, "commit", "--quiet", "--allow-empty", "-m", message)
    return run(directory, "rev-parse", "HEAD")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.delenv("FOXRUN_TREE_RUN", raising=False)
    monkeypatch.delenv("FOXRUN_COMMIT_RUN", raising=False)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path / "repo"
    path.mkdir()
    run(path, "init", "--quiet")
    (path / "train.py").write_text("print(1)\n")
    (path / "sub").mkdir()
    (path / "sub" / "data.txt").write_text("x\n")
    (path / ".gitignore").write_text("out/\n*.log\n")
    commit(path, "first")
    return path


# Revisions


def test_revisions_resolve_to_forty_digits(repo: Path) -> None:
    first = run(repo, "rev-parse", "HEAD")
    second = commit(repo, "second")
    run(repo, "tag", "-a", "v1", "-m", "v1", first)
    run(repo, "branch", "ml-alpha/ünï-code", first)
    assert git.resolve(repo, "HEAD") == git.resolve(repo / "sub", second[:8]) == git.resolve(repo, " main ") == second
    assert git.resolve(repo, "HEAD~1") == git.resolve(repo, "v1") == git.resolve(repo, "ml-alpha/ünï-code") == first
    assert git.commit_tree(repo, "HEAD~1") == run(repo, "rev-parse", f"{first}^{{tree}}")


@pytest.mark.parametrize(
    ("revision", "says"),
    [
        ("nope", "'nope' names no commit; run: git fetch --all --tags, or check the spelling"),
        ("f" * 40, f"'{'f' * 40}' names no commit"),
        ("", "'' is no revision; give a SHA, a branch or a tag"),
        ("--output=/tmp/x", "'--output=/tmp/x' is no revision"),
        ("HEAD\nHEAD", "is no revision"),
        ("HEAD; touch pwned", "names no commit"),
        ("$(touch pwned)", "names no commit"),
        ("HEAD..HEAD~1", "names no commit"),
        ("HEAD:train.py", "names no commit"),
        ("{{workflow.name}}", "names no commit"),
        ("a\x00b", "is no revision"),
    ],
)
def test_what_is_no_revision_is_told(repo: Path, revision: str, says: str) -> None:
    with pytest.raises(git.GitError) as caught:
        git.resolve(repo, revision)
    assert says in str(caught.value)
    assert caught.value.remedy
    assert isinstance(caught.value, ContractError)
    assert not (repo / "pwned").exists()


def test_a_shallow_clone_says_how_to_get_the_commit(repo: Path, tmp_path: Path) -> None:
    first = run(repo, "rev-parse", "HEAD")
    commit(repo, "second")
    run(tmp_path, "clone", "--quiet", "--depth", "1", repo.as_uri(), "shallow")
    with pytest.raises(git.GitError, match=r"is not in this shallow clone; run: git fetch --unshallow, then again"):
        git.resolve(tmp_path / "shallow", first)


def test_an_ambiguous_abbreviation_is_told(repo: Path) -> None:
    tree = run(repo, "rev-parse", "HEAD^{tree}")
    by_start: dict[str, bytes] = {}
    for number in range(5000):
        text = f"tree {tree}\nauthor A <a@b> {number} +0000\ncommitter A <a@b> 0 +0000\n\nx\n".encode()
        start = hashlib.sha1(b"commit %d\0%s" % (len(text), text)).hexdigest()[:4]
        if start in by_start:
            break
        by_start[start] = text
    for content in (text, by_start[start]):
        command = ["git", "hash-object", "-t", "commit", "-w", "--stdin"]
        subprocess.run(command, cwd=repo, input=content, capture_output=True, check=True)
    with pytest.raises(git.GitError, match=r"names more than one commit \([0-9a-f]+, [0-9a-f]+\); give more digits"):
        git.resolve(repo, start)


def test_a_repository_without_a_commit(tmp_path: Path) -> None:
    run(tmp_path, "init", "--quiet", "new")
    with pytest.raises(git.GitError, match="the repository has no commit yet; commit first"):
        git.resolve(tmp_path / "new", "HEAD")
    assert git.tree_hash(tmp_path / "new") == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
    assert git.branch(tmp_path / "new") == "main"


def test_outside_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(git.NotARepository, match="is in no git repository; name a git repository"):
        git.resolve(tmp_path, "HEAD")
    with pytest.raises(git.GitError, match="there is no such directory"):
        git.resolve(tmp_path / "nowhere", "HEAD")
    assert git.branch(tmp_path) == ""
    assert git.tree_hash(tmp_path) == ""
    monkeypatch.setenv("FOXRUN_TREE_RUN", "b" * 40)
    assert git.tree_hash(tmp_path) == "b" * 40
    assert git.commit_run(tmp_path) == ""
    monkeypatch.setenv("FOXRUN_COMMIT_RUN", "main")
    assert git.commit_run(tmp_path) == ""
    monkeypatch.setenv("FOXRUN_COMMIT_RUN", "c" * 40)
    assert git.commit_run(tmp_path) == "c" * 40


def test_without_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("FOXRUN_TREE_RUN", "c" * 40)
    assert git.tree_hash(tmp_path) == "c" * 40
    assert git.branch(tmp_path) == ""
    with pytest.raises(git.NotARepository, match="git is not installed; install git"):
        git.resolve(tmp_path, "HEAD")


def test_branch_and_dirtiness(repo: Path) -> None:
    assert (git.branch(repo), git.is_dirty(repo)) == ("main", False)
    (repo / "run.log").write_text("ignored")
    assert not git.is_dirty(repo)
    (repo / "new.py").write_text("")
    assert git.is_dirty(repo / "sub")
    run(repo, "checkout", "--quiet", "--detach")
    assert git.branch(repo) == ""


def test_whether_a_remote_has_a_commit(repo: Path, tmp_path: Path) -> None:
    sha = run(repo, "rev-parse", "HEAD")
    assert git.is_published(repo, sha), "nothing is known of any remote"
    assert git.remote_url(repo) == ""
    run(tmp_path, "clone", "--quiet", str(repo), "clone")
    clone = tmp_path / "clone"
    assert (git.is_published(clone, sha), git.remote_url(clone)) == (True, str(repo))
    (clone / "new.py").write_text("")
    run(clone, "add", "--all")
    run(clone, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "new")
    assert not git.is_published(clone, "HEAD")


# Tree hashes


def snapshot(repo: Path) -> dict[str, bytes]:
    """Every file of .git with its content."""
    return {str(path): path.read_bytes() for path in sorted((repo / ".git").rglob("*")) if path.is_file()}


def test_the_tree_hash_is_that_of_the_commit_it_would_be(repo: Path) -> None:
    assert git.tree_hash(repo) == git.commit_tree(repo, "HEAD")
    (repo / "train.py").write_text("print(2)\n")
    (repo / "sub" / "new.txt").write_text("new\n")
    (repo / "sub" / "data.txt").unlink()
    (repo / "out").mkdir()
    (repo / "out" / "big.bin").write_text("ignored")
    (repo / "link").symlink_to("train.py")
    (repo / "tool").write_text("#!/bin/sh\n")
    (repo / "tool").chmod(0o755)
    before = snapshot(repo)
    found = git.tree_hash(repo / "sub")
    assert found != git.commit_tree(repo, "HEAD")
    assert snapshot(repo) == before
    commit(repo, "all of it")
    assert found == git.commit_tree(repo, "HEAD")


def test_what_is_staged_does_not_matter_but_what_lies_there(repo: Path) -> None:
    (repo / "train.py").write_text("print(2)\n")
    changed = git.tree_hash(repo)
    run(repo, "add", "train.py")
    assert git.tree_hash(repo) == changed
    (repo / "train.py").write_text("print(1)\n")
    assert git.tree_hash(repo) == git.commit_tree(repo, "HEAD")


def test_a_change_within_the_clock_tick_of_the_index_is_seen(repo: Path) -> None:
    for number in range(5):
        (repo / "train.py").write_text(f"print({number})\n")  # the same size each time
        expected = commit(repo, str(number))
        (repo / "train.py").write_text(f"print({number + 5})\n")
        assert git.tree_hash(repo) != git.commit_tree(repo, expected)


def test_files_hidden_from_git_are_seen(repo: Path) -> None:
    run(repo, "update-index", "--assume-unchanged", "train.py")
    run(repo, "update-index", "--skip-worktree", "sub/data.txt")
    assert git.tree_hash(repo) == git.commit_tree(repo, "HEAD")
    (repo / "train.py").write_text("print(3)\n")
    one = git.tree_hash(repo)
    (repo / "sub" / "data.txt").write_text("y\n")
    two = git.tree_hash(repo)
    assert len({one, two, git.commit_tree(repo, "HEAD")}) == 3
    assert not git.is_dirty(repo)


def test_tracked_files_that_are_also_ignored_count(repo: Path) -> None:
    (repo / "kept.log").write_text("1\n")
    run(repo, "add", "--force", "kept.log")
    run(repo, "commit", "--quiet", "-m", "forced")
    assert git.tree_hash(repo) == git.commit_tree(repo, "HEAD")
    (repo / "kept.log").write_text("2\n")
    assert git.tree_hash(repo) != git.commit_tree(repo, "HEAD")


def test_byte_code_and_excluded_directories_do_not_count(repo: Path) -> None:
    (repo / "sub" / "__pycache__").mkdir()
    (repo / "sub" / "__pycache__" / "x.cpython-311.pyc").write_bytes(b"x")
    (repo / "runs").mkdir()
    (repo / "runs" / "diag.jsonl").write_text("{}\n")
    assert git.tree_hash(repo, exclude=[repo / "runs"]) == git.commit_tree(repo, "HEAD")
    assert git.tree_hash(repo, exclude=[repo.parent, repo]) == git.tree_hash(repo) != git.commit_tree(repo, "HEAD")


def test_odd_file_names(repo: Path) -> None:
    for name in ("-x", ":(top)", "a b", "ünï", "tab\t", "*", "'\"$(x)"):
        (repo / name).write_text(name)
    found = git.tree_hash(repo)
    commit(repo)
    assert found == git.commit_tree(repo, "HEAD")


def test_a_read_only_repository(repo: Path) -> None:
    (repo / "train.py").write_text("print(9)\n")
    expected = git.tree_hash(repo)
    for path in [repo / ".git", *(repo / ".git").rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        assert git.tree_hash(repo) == expected
    finally:
        for path in [repo / ".git", *(repo / ".git").rglob("*")]:
            path.chmod(path.stat().st_mode | 0o200)


def test_variables_of_a_git_hook_do_not_mislead(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = git.tree_hash(repo)
    run(tmp_path, "init", "--quiet", "other")
    for name, value in {
        "GIT_DIR": str(tmp_path / "other" / ".git"),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_WORK_TREE": str(tmp_path / "other"),
        "GIT_LITERAL_PATHSPECS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert git.tree_hash(repo) == expected
    assert git.branch(repo) == "main"


def test_hooks_do_not_run(repo: Path, tmp_path: Path) -> None:
    for name in ("post-index-change", "post-checkout"):
        hook = repo / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\n")
        hook.chmod(0o755)
    (repo / "train.py").write_text("print(7)\n")
    git.tree_hash(repo)
    git.add_worktree(repo, "HEAD", tmp_path / "tree")
    assert not list(tmp_path.glob("ran-*"))


# Worktrees


def test_a_clean_detached_worktree(repo: Path, tmp_path: Path) -> None:
    first = git.resolve(repo, "HEAD")
    (repo / "train.py").write_text("uncommitted")
    target = tmp_path / "home" / "worktrees" / first
    assert git.add_worktree(repo, first[:10], target) == target
    assert (target / "train.py").read_text() == "print(1)\n"
    assert (git.branch(target), git.is_dirty(target)) == ("", False)
    assert git.tree_hash(target) == git.commit_tree(repo, first)
    assert [path.name for path in target.parent.iterdir()] == [first]
    assert str(target) in run(repo, "worktree", "list")
    assert "prunable" not in run(repo, "worktree", "list")
    run(repo, "worktree", "prune", "--expire", "now")
    assert git.resolve(target, "HEAD") == first


def test_a_worktree_is_used_again_with_byte_code_in_it(repo: Path, tmp_path: Path) -> None:
    target = git.add_worktree(repo, "HEAD", tmp_path / "tree")
    (target / "__pycache__").mkdir()
    (target / "__pycache__" / "train.cpython-311.pyc").write_bytes(b"x")
    marker = (target / "train.py").stat().st_ino
    assert git.add_worktree(repo, "HEAD", target) == target
    assert (target / "train.py").stat().st_ino == marker


def test_a_changed_worktree_is_refused(repo: Path, tmp_path: Path) -> None:
    target = git.add_worktree(repo, "HEAD", tmp_path / "tree")
    (target / "train.py").write_text("print(2)\n")
    with pytest.raises(git.GitError, match=r"no longer what commit [0-9a-f]{40} holds; remove it: git worktree remove"):
        git.add_worktree(repo, "HEAD", target)
    (target / "train.py").write_text("print(1)\n")
    commit(repo, "another tree is another worktree")
    (repo / "train.py").write_text("print(4)\n")
    commit(repo, "later")
    with pytest.raises(git.GitError, match="no longer what commit"):
        git.add_worktree(repo, "HEAD", target)


def test_a_directory_in_the_way_is_left_alone(repo: Path, tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    assert git.add_worktree(repo, "HEAD", tmp_path / "tree").is_dir()  # an empty one is no trouble
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "precious").write_text("x")
    with pytest.raises(git.GitError, match="is in the way of a worktree; move it away"):
        git.add_worktree(repo, "HEAD", tmp_path / "mine")
    with pytest.raises(git.GitError, match="is in the way of a worktree"):
        git.add_worktree(repo, "HEAD", repo / "sub")
    assert (tmp_path / "mine" / "precious").read_text() == "x"


def test_many_ask_for_one_worktree_at_once(repo: Path, tmp_path: Path) -> None:
    target = tmp_path / "home" / "tree"
    code = "import sys; from foxrun import git; print(git.add_worktree(*sys.argv[1:]))"
    command = [sys.executable, "-c", code, str(repo), "HEAD", str(target)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}

    def ask(_: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(ask, range(4)))
    assert [(one.returncode, one.stdout.strip()) for one in done] == [(0, str(target))] * 4
    assert [path.name for path in target.parent.iterdir()] == ["tree"]
    assert git.tree_hash(target) == git.commit_tree(repo, "HEAD")
    assert len(run(repo, "worktree", "list").splitlines()) == 2


def test_a_worktree_of_a_commit_that_is_not_there_leaves_nothing(repo: Path, tmp_path: Path) -> None:
    with pytest.raises(git.GitError, match="names no commit"):
        git.add_worktree(repo, "f" * 40, tmp_path / "trees" / "x")
    assert not (tmp_path / "trees").exists()


def test_a_bare_repository_is_named_as_one(repo: Path, tmp_path: Path) -> None:
    commit(repo)
    run(tmp_path, "clone", "--quiet", "--bare", str(repo), "bare.git")
    with pytest.raises(git.GitError, match="is a bare repository") as caught:
        git.top_level(tmp_path / "bare.git")
    assert caught.value.remedy == "go to a working tree of it: git worktree add, or git clone"
