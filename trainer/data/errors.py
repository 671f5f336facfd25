"""What is raised when market data cannot be used: always which file, what is wrong, and what to do."""

from __future__ import annotations


class DataError(ValueError):
    """Market data that cannot be used. ``str(error)`` is one line: file, what was found, what was wanted, remedy.

    ``file`` is the name without directories, since messages may reach files that are compared or published.
    """

    def __init__(self, file: str, problem: str, remedy: str) -> None:
        super().__init__(f"{file}: {problem}; {remedy}")
        self.file = file
        self.problem = problem
        self.remedy = remedy
