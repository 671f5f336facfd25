"""Errors that a user of the trainer can mend: one clear line, never a traceback.

TrainerError                exit 1
├── UsageError              exit 2   called wrongly: unknown parameter, malformed number, mode not built
└── ResumeError             exit 1   the checkpoint is damaged or belongs to another configuration
"""

from __future__ import annotations


class TrainerError(Exception):
    """What went wrong, where, and what to do next, in one line."""

    exit_code = 1


class UsageError(TrainerError):
    """The trainer was called wrongly."""

    exit_code = 2


class ResumeError(TrainerError):
    """A checkpoint cannot be resumed from."""
