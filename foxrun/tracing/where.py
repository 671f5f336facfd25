"""The line of the program that an event comes from: the innermost frame that is neither torch's nor ours."""

from __future__ import annotations

import contextlib
import os
import sys
from types import CodeType, FrameType

PROGRAM, LIBRARY, IMPORT = "program", "library", "import"
_STDLIB = os.path.dirname(os.__file__) + os.sep  # noqa: PTH120
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # noqa: PTH100, PTH120
TRACING = OURS + "tracing" + os.sep
SITES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
# torch and what it brings along; their own files are nobody's program.
_SKIPPED = {
    "_distutils_hack", "filelock", "fsspec", "functorch", "jinja2", "mpmath", "networkx", "numpy", "pkg_resources",
    "setuptools", "sympy", "torch", "torchgen", "triton",
}  # fmt: skip

_kinds: dict[str, str] = {}
_texts: dict[tuple[CodeType, int], str] = {}
_roots: list[str] = []


def kind_of(filename: str) -> str:
    """program, library (torch, numpy, the standard library, foxrun) or import (Python's import system)."""
    kind = _kinds.get(filename)
    if kind is None:
        kind = _kinds[filename] = _classify(filename)
    return kind


def _classify(filename: str) -> str:
    if filename.startswith("<"):
        if filename.startswith("<frozen importlib"):
            return IMPORT
        return PROGRAM if filename in ("<string>", "<stdin>") else LIBRARY
    if filename.startswith(OURS):
        return LIBRARY
    for site in SITES:
        if site in filename:
            package = filename.rpartition(site)[2].partition(os.sep)[0]
            return LIBRARY if package in _SKIPPED else PROGRAM
    return LIBRARY if filename.startswith(_STDLIB) else PROGRAM


def innermost(frame: FrameType | None, within: CodeType | None = None) -> FrameType | None:
    """The innermost frame of the program, from ``frame`` outwards; None within an import or in none of its own.

    ``within``: code that calls what is meant, so that none further out counts.
    """
    while frame is not None and frame.f_code is not within:
        filename = frame.f_code.co_filename
        kind = _kinds.get(filename) or kind_of(filename)
        if kind is PROGRAM and (filename != "<string>" or frame.f_globals.get("__name__") == "__main__"):
            return frame
        if kind is IMPORT:
            return None
        frame = frame.f_back
    return None


# Standard modules that hand a host value on to their caller; others (multiprocessing, tempfile, threading) keep it.
_HAND_ON = {
    "<frozen _collections_abc>", "<frozen os>", "<timeit-src>", "_collections_abc.py", "_strptime.py", "calendar.py",
    "fnmatch.py", "glob.py", "os.py", "pathlib.py", "random.py", "secrets.py", "shutil.py", "timeit.py", "uuid.py",
}  # fmt: skip

_COMPILER = tuple(f"{os.sep}torch{os.sep}{part}{os.sep}" for part in ("_dynamo", "_functorch", "_inductor"))

# They measure for whoever asks: what they read of a clock is the program's own measurement.
_TIMERS = ("<timeit", "timeit.py", f"torch{os.sep}utils{os.sep}benchmark{os.sep}")


def is_timer(filename: str) -> bool:
    """Whether a file is timeit's, or that of torch.utils.benchmark."""
    return any(part in filename for part in _TIMERS)


def direct(frame: FrameType | None, *, torch_too: bool = False) -> FrameType | None:
    """The program's frame where the call comes from its own files, or through modules that hand the value on.

    ``torch_too``: calls of torch's and numpy's own files count for the line of the program that led to them.
    """
    while frame is not None:
        filename = frame.f_code.co_filename
        kind = kind_of(filename)
        if kind is PROGRAM and (filename != "<string>" or frame.f_globals.get("__name__") == "__main__"):
            return None if _imported(frame) else frame
        if kind is IMPORT:
            return None
        if filename.startswith(OURS) and not filename.startswith(TRACING):
            return None  # a run's id and its times are the contract's own
        if not filename.startswith(OURS):
            packaged = any(site in filename for site in SITES)
            if packaged and torch_too:
                return _for_the_program(frame)
            if not is_timer(filename) and (packaged or os.path.basename(filename) not in _HAND_ON):  # noqa: PTH119
                return None
        frame = frame.f_back
    return None


def _for_the_program(frame: FrameType | None) -> FrameType | None:
    """The program's frame that led to a library's; None where torch.compile stands between: what it draws and puts back
    while it makes a graph is its own affair, but for what it calls of the program."""
    found = innermost(frame)
    while frame is not None and frame is not found:
        if any(part in frame.f_code.co_filename for part in _COMPILER):
            return None
        frame = frame.f_back
    return found


def _imported(frame: FrameType | None) -> bool:
    """Whether an installed package does this while it is imported: what it draws and reads then is its own affair."""
    while frame is not None:
        filename = frame.f_code.co_filename
        kind = kind_of(filename)
        if kind is IMPORT:
            return True
        if kind is PROGRAM and not any(site in filename for site in SITES):
            return False
        frame = frame.f_back
    return False


def text(frame: FrameType | None) -> str:
    """``file.py:31 function``, with the file as seen from the program's own folder; empty for None."""
    if frame is None:
        return ""
    key = (frame.f_code, frame.f_lineno)
    known = _texts.get(key)
    if known is None:
        code = frame.f_code
        known = _texts[key] = f"{relative(code.co_filename)}:{frame.f_lineno} {code.co_name}"
    return known


def caller(depth: int = 1) -> str:
    """Where the program stands now, ``depth`` frames above the one that asks."""
    return text(innermost(sys._getframe(depth + 1)))


def relative(filename: str) -> str:
    """A file's name that does not depend on where the program lies."""
    if filename.startswith("<"):
        return filename
    for site in SITES:
        if site in filename:
            return filename.rpartition(site)[2]
    filename = os.path.abspath(filename)  # noqa: PTH100
    if not _roots:
        _roots.extend(_find_roots())
    inside = [filename[len(root) :] for root in _roots if filename.startswith(root)]
    return min(inside, key=len) if inside else os.path.basename(filename)  # noqa: PTH119


def _find_roots() -> list[str]:
    module = sys.modules.get("__main__")
    main = getattr(module, "__file__", None)
    folders = [os.path.dirname(os.path.abspath(main))] if main else []  # noqa: PTH100, PTH120
    # Of ``python -m package`` the folder that holds the package, so that its files have the names that people use.
    package = getattr(getattr(module, "__spec__", None), "parent", None) or ""
    for _ in package.split(".") if package and folders else ():
        folders[0] = os.path.dirname(folders[0])  # noqa: PTH120
    with contextlib.suppress(OSError):
        folders.append(os.getcwd())  # noqa: PTH109
    return [folder.rstrip(os.sep) + os.sep for folder in folders]
