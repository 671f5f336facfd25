"""What can be wrong with a file of a run, and the error that stops a reader or a writer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """Something wrong in a file of a run, found while reading it.

    ``line`` counts from 1; None where the trouble has no line. ``fatal``: the file is missing, cut, unreadable, or not
    as its manifest says, so that its content proves nothing. Otherwise it was read whole and is merely odd.
    """

    file: str
    line: int | None
    what: str
    remedy: str
    fatal: bool = True

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{where}: {self.what}" + (f"; {self.remedy}" if self.remedy else "")


class ContractError(Exception):
    """A file or a call breaks the run contract; the text names file, line and what to do next."""

    def __init__(self, what: str, *, file: str = "", line: int | None = None, remedy: str = "") -> None:
        self.what = what
        self.file = file
        self.line = line
        self.remedy = remedy
        super().__init__(what)

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}, line {self.line}"
        text = f"{where}: {self.what}" if where else self.what
        return f"{text}; {self.remedy}" if self.remedy else text

    def problem(self, file: str | None = None, line: int | None = None) -> Problem:
        """The same as a fatal :class:`Problem`, in ``file`` at ``line`` where this error does not say."""
        return Problem(self.file or file or "", self.line if self.line is not None else line, self.what, self.remedy)
