"""All that foxrun asks of git: revisions, tree hashes of the files as they are, clean worktrees.

Arguments are data: no shell, nothing that begins with a dash is taken as a revision, no hook runs. Variables that a git
hook sets (GIT_DIR, GIT_INDEX_FILE, ...) are dropped, so that a call means the directory it names.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from foxrun.git_files import head_of_files, root_of, tree_of_files
from foxrun.problems import ContractError

TREE_RUN_VARIABLE, COMMIT_RUN_VARIABLE = "FOXRUN_TREE_RUN", "FOXRUN_COMMIT_RUN"
# `git rev-parse --local-env-vars`, less what passes settings (GIT_CONFIG_COUNT); and what changes the meaning of paths.
_DROPPED = frozenset({
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_DIR", "GIT_GLOB_PATHSPECS",
    "GIT_GRAFT_FILE", "GIT_ICASE_PATHSPECS", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX", "GIT_LITERAL_PATHSPECS", "GIT_NAMESPACE", "GIT_NOGLOB_PATHSPECS",
    "GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_QUARANTINE_PATH", "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
})  # fmt: skip
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_DEADLINE_S = 600
_OTHERS = "git refuses a repository of another user"


class GitError(ContractError):
    """Git could not do what was asked; the text says what, where and what to do next."""


class NotARepository(GitError):
    """The directory is in no git repository, or git is not installed."""


def _run(
    directory: Path | str, arguments: Sequence[str], *, extra: Mapping[str, str] | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    environment = {key: value for key, value in os.environ.items() if key not in _DROPPED}
    environment.update({"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}, **(extra or {}))
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false"]
    try:
        return subprocess.run(
            [*command, *arguments],
            cwd=directory,
            env=environment,
            input=stdin,
            capture_output=True,
            timeout=_DEADLINE_S,
            check=False,
        )
    except FileNotFoundError:
        if not Path(directory).is_dir():
            raise GitError("there is no such directory", file=str(directory), remedy="check the path") from None
        raise NotARepository("git is not installed", remedy="install git") from None
    except NotADirectoryError:
        raise GitError("is not a directory", file=str(directory), remedy="name the repository's directory") from None
    except subprocess.TimeoutExpired:
        what = f"git {arguments[0]} took over {_DEADLINE_S} s"
        raise GitError(what, file=str(directory), remedy="check the disk") from None


def _git(
    directory: Path | str, arguments: Sequence[str], *, extra: Mapping[str, str] | None = None, stdin: bytes = b""
) -> str:
    done = _run(directory, arguments, extra=extra, stdin=stdin)
    if done.returncode:
        raise _error(directory, arguments, done)
    return done.stdout.decode(errors="surrogateescape")


def _error(directory: Path | str, arguments: Sequence[str], done: subprocess.CompletedProcess[bytes]) -> GitError:
    text = done.stderr.decode(errors="replace").strip()
    last = text.splitlines()[-1].removeprefix("fatal: ") if text else f"exit code {done.returncode}"
    if "not a git repository" in text:
        return NotARepository("is in no git repository", file=str(directory), remedy="name a git repository")
    if "must be run in a work tree" in text:
        what = "is a bare repository (or the inside of .git), which has no files"
        return GitError(what, file=str(directory), remedy="go to a working tree of it: git worktree add, or git clone")
    if "dubious ownership" in text:
        remedy = f"run: git config --global --add safe.directory {Path(directory).resolve()}"
        return GitError(_OTHERS, file=str(directory), remedy=remedy)
    return GitError(f"git {arguments[0]} failed: {last}", file=str(directory), remedy="run it by hand to see more")


def top_level(directory: Path | str) -> Path:
    """The root of the working tree that holds ``directory``. Raises NotARepository outside one."""
    return Path(_git(directory, ["rev-parse", "--show-toplevel"]).rstrip("\n"))


def resolve(repo: Path | str, revision: str) -> str:
    """The commit that a revision (branch, tag, HEAD~2, abbreviated SHA) names, as 40 digits.

    Raises GitError when it names none, more than one, or one that a shallow clone does not hold.
    """
    text = revision.strip()
    if not text or text.startswith("-") or any(ord(character) < 32 for character in text):
        raise GitError(f"{revision!r} is no revision", file=str(repo), remedy="give a SHA, a branch or a tag")
    done = _run(repo, ["rev-parse", "--verify", "--end-of-options", f"{text}^{{commit}}"])
    if done.returncode == 0:
        found = done.stdout.decode().strip()
        if _SHA.match(found):
            return found
    stderr = done.stderr.decode(errors="replace")
    if "not a git repository" in stderr or "dubious ownership" in stderr:
        raise _error(repo, ["rev-parse"], done)
    if "ambiguous" in stderr:
        candidates = re.findall(r"hint:\s+([0-9a-f]+) commit", stderr)
        which = f" ({', '.join(candidates[:5])})" if candidates else ""
        raise GitError(f"{text!r} names more than one commit{which}", file=str(repo), remedy="give more digits")
    if _git(repo, ["rev-parse", "--is-shallow-repository"]).strip() == "true":
        raise GitError(
            f"{text!r} is not in this shallow clone", file=str(repo), remedy="run: git fetch --unshallow, then again"
        )
    if _run(repo, ["rev-parse", "--verify", "--quiet", "HEAD"]).returncode:
        raise GitError("the repository has no commit yet", file=str(repo), remedy="commit first")
    raise GitError(
        f"{text!r} names no commit", file=str(repo), remedy="run: git fetch --all --tags, or check the spelling"
    )


def is_commit(text: str) -> bool:
    """Whether a text is a full hash, and not a name of something."""
    return _SHA.match(text) is not None


def commit_tree(repo: Path | str, sha: str) -> str:
    """The tree hash of a commit."""
    return _git(repo, ["rev-parse", "--verify", "--end-of-options", f"{resolve(repo, sha)}^{{tree}}"]).strip()


def branch(directory: Path | str) -> str:
    """The branch that is checked out; empty for a detached HEAD or outside a repository."""
    try:
        done = _run(directory, ["symbolic-ref", "--short", "--quiet", "HEAD"])
    except NotARepository:
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def commits_between(repo: Path | str, good: str, bad: str) -> list[str]:
    """The commits after ``good`` up to ``bad``, oldest first, by first parents; none when ``bad`` is not after it."""
    commits = _git(repo, ["rev-list", "--first-parent", "--reverse", f"{resolve(repo, good)}..{resolve(repo, bad)}"])
    ancestor = _run(repo, ["merge-base", "--is-ancestor", resolve(repo, good), resolve(repo, bad)])
    return commits.split() if ancestor.returncode == 0 else []


def file_at(repo: Path | str, sha: str, path: str) -> str:
    """The text of a file in a commit; empty where there is none."""
    done = _run(repo, ["show", f"{resolve(repo, sha)}:{path}"])
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def files_below(repo: Path | str, sha: str, folder: str) -> list[str]:
    """The paths that a commit holds below a folder of it."""
    listing = _git(repo, ["ls-tree", "-r", "-z", "--name-only", "--full-tree", resolve(repo, sha), "--", f"{folder}/"])
    return [path for path in listing.split("\0") if path]


def subject(repo: Path | str, sha: str) -> str:
    """The first line of a commit's message."""
    return _git(repo, ["show", "--no-patch", "--format=%s", "--end-of-options", resolve(repo, sha)]).strip()


def remote_url(repo: Path | str, remote: str = "origin") -> str:
    """The URL that is fetched from, as it is set; empty when there is no such remote."""
    done = _run(repo, ["config", "--get", f"remote.{remote}.url"])
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


def is_published(repo: Path | str, sha: str) -> bool:
    """Whether a remote has the commit, as far as this clone knows; True where it knows of no remote's branches."""
    known = _git(repo, ["for-each-ref", "--count=1", "refs/remotes/"])
    return not known or bool(
        _git(repo, ["for-each-ref", "--count=1", "--contains", resolve(repo, sha), "refs/remotes/"])
    )


def is_dirty(directory: Path | str) -> bool:
    """Whether the working tree has uncommitted changes or files that git neither tracks nor ignores."""
    return bool(_git(directory, ["status", "--porcelain", "--untracked-files=normal"]))


def tree_hash(directory: Path | str, *, exclude: Iterable[Path] = ()) -> str:
    """The tree hash that a commit of the working tree around ``directory``, as it is now, would have.

    Counts uncommitted changes and files that are neither tracked nor ignored; never byte code, nor what is below
    ``exclude``. The repository is not written to: index and new objects are temporary. A checkout that git cannot be
    asked about (it is not installed, or refuses another user's) is hashed by git_files. Outside a repository: the
    variable FOXRUN_TREE_RUN, which images set, else an empty string.
    """
    try:
        top = top_level(directory)
    except GitError as error:
        root = root_of(directory)
        if root is not None and (shutil.which("git") is None or _OTHERS in error.what):
            return tree_of_files(root, exclude=exclude)
        if isinstance(error, NotARepository) or os.environ.get(TREE_RUN_VARIABLE):
            return os.environ.get(TREE_RUN_VARIABLE, "")
        raise
    places = _git(top, ["rev-parse", "--git-path", "index", "--git-path", "objects"]).splitlines()
    index, objects = (Path(top, place) for place in places)
    with tempfile.TemporaryDirectory(prefix="foxrun-tree-") as scratch:
        ours = Path(scratch) / "index"
        if index.exists():
            shutil.copy2(index, ours)  # with its mtime: by that git tells which entries it must read again
        (Path(scratch) / "objects").mkdir()
        extra = {
            "GIT_INDEX_FILE": str(ours),
            "GIT_OBJECT_DIRECTORY": str(Path(scratch) / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects.resolve()),
        }
        _unhide(top, extra)
        paths = [".", ":(exclude,top,glob)**/__pycache__/**", ":(exclude,top,glob)**/*.pyc"]
        for path in exclude:
            resolved = Path(path).resolve()
            if resolved.is_relative_to(top.resolve()) and resolved != top.resolve():
                paths.append(f":(exclude,top,literal){resolved.relative_to(top.resolve())}")
        _add_all(top, paths, extra)
        return _git(top, ["write-tree"], extra=extra).strip()


def commit_run(directory: Path | str, tree: str | None = None) -> str:
    """The commit of the files around ``directory``: what is checked out there, in an image FOXRUN_COMMIT_RUN.

    Empty where nobody knows, and where the files are of another tree than their commit's (``tree``: of the files, where
    it is known already).
    """
    try:
        top = top_level(directory)
        head = resolve(top, "HEAD")
        return head if (tree or tree_hash(top)) == commit_tree(top, head) else ""
    except GitError:
        root = root_of(directory)
        found = os.environ.get(COMMIT_RUN_VARIABLE, "").strip() if root is None else head_of_files(root)
        return found if is_commit(found) else ""


def _add_all(top: Path, paths: Sequence[str], extra: Mapping[str, str]) -> None:
    """Stage what is there; again when it fails, as it does for a file that vanished between listing and reading."""
    arguments = ["-c", "advice.addEmbeddedRepo=false", "add", "--all", "--", *paths]
    for _ in range(2):
        if _run(top, arguments, extra=extra).returncode == 0:
            return
    _git(top, arguments, extra=extra)


def _unhide(top: Path, extra: Mapping[str, str]) -> None:
    """Look at files that the user told git to assume unchanged: what runs is what lies there."""
    listing = _git(top, ["ls-files", "-v", "-z"], extra=extra).split("\0")
    assumed = [entry[2:] for entry in listing if entry and entry[0].islower()]
    skipped = [entry[2:] for entry in listing if entry and entry[0] in "Ss" and (top / entry[2:]).is_file()]
    for option, names in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", skipped)):
        if names:
            stdin = "\0".join(names).encode(errors="surrogateescape")
            _git(top, ["update-index", option, "-z", "--stdin"], extra=extra, stdin=stdin)


def add_worktree(repo: Path | str, sha: str, directory: Path | str) -> Path:
    """A clean, detached worktree of a commit at ``directory``; one that is there already is used again.

    It is built beside and then renamed, so a crash leaves no half-made one, and two processes may ask at once. Raises
    GitError when the directory holds something else, or a worktree whose files were changed.
    """
    commit = resolve(repo, sha)
    target = Path(directory).absolute()
    if target.exists() and any(target.iterdir()):
        return _checked(repo, commit, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    building = target.with_name(f".{target.name[:100]}.{os.urandom(6).hex()}.building")
    try:
        _git(repo, ["worktree", "add", "--detach", "--quiet", "--", str(building), commit])
        try:
            building.rename(target)
        except OSError:
            if not (target.exists() and any(target.iterdir())):
                raise
            return _checked(repo, commit, target)  # another process was first
        _run(target, ["worktree", "repair"])  # tells the repository where it is now, lest a prune forgets it
    finally:
        if building.exists():
            _run(repo, ["worktree", "remove", "--force", "--", str(building)])
            shutil.rmtree(building, ignore_errors=True)
    return target


def _checked(repo: Path | str, commit: str, target: Path) -> Path:
    remedy = f"remove it: git worktree remove --force {target}"
    try:
        top = top_level(target)
    except NotARepository:
        top = Path()
    if top != target.resolve():
        raise GitError(
            "is in the way of a worktree", file=str(target), remedy="move it away, or name another directory"
        )
    if tree_hash(target) != commit_tree(repo, commit):
        raise GitError(f"the worktree is no longer what commit {commit} holds", file=str(target), remedy=remedy)
    return target
