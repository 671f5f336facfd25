"""No space left where twins' copies and traces lie: it is told as that, and not as what fails for it."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from orchestrator.errors import NoPlace

TEMPORARY = "foxrun-localize-"  # how a folder below TMPDIR begins that goes with the end
LEAST_BYTES = 64 * 1024


def full(folder: Path) -> bool:
    """Whether so little is left there that what was written last may be cut."""
    left = os.statvfs(folder)
    return left.f_bavail * left.f_frsize < LEAST_BYTES or (left.f_files > 0 and left.f_favail == 0)


def none_left(work: Path) -> NoPlace:
    """What is said of it; ``work`` is where all copies and traces lie."""
    where = work.parent if work.name.startswith(TEMPORARY) else work
    return NoPlace(
        f"no space is left in {where}, where the twins' copies and traces lie",
        remedy="free some there, or name another place: TMPDIR=DIR foxrun localize, or --out DIR",
    )


@contextlib.contextmanager
def needed(work: Path) -> Iterator[None]:
    """Raises NoPlace where something inside finds no space."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise none_left(work) from None
