"""Every exception that foxrun raises on purpose, and the exit code each becomes.

    FoxrunError
    ├── UsageError              2   the command was called wrongly; final
    ├── GateFailed              4   the twin run parted; final
    ├── JobFailed               5   the trainer failed, was killed, or wrote no result; final
    ├── InfrastructureError     6   storage, network, cluster or deadline; worth retrying
    │   ├── DeadlinePassed
    │   ├── EngineDied              the local engine was killed under a run
    │   ├── NoPlace                 the directory to work in is gone, or its disk is full; final
    │   ├── WorkflowDeleted         somebody deleted the workflow that was followed
    │   └── Unschedulable           pods wait for a node or an image that does not come; final
    ├── WorkflowNotFound        2   no such workflow; final
    ├── WorkflowExists          2   the name is taken by another workflow; final
    ├── UnsupportedConstruct    2   the local engine does not have this construct; final
    └── IncompleteRun           7   a run directory is missing, cut or not as its manifest says; final

Only the command line turns them into exit codes. A message says what, where and what to do next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foxrun.problems import ContractError


class FoxrunError(Exception):
    """Base of all errors with a message for people.

    ``str(error)`` says what and where; ``remedy`` says what to do next.
    """

    exit_code = 1
    retryable = False

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


class UsageError(FoxrunError):
    """The command was called wrongly."""

    exit_code = 2


def usage_of(error: ContractError) -> UsageError:
    """The same as the caller's mistake: a revision, a repository, a file that they named."""
    return UsageError(f"{error.file}: {error.what}" if error.file else error.what, remedy=error.remedy)


class WorkflowNotFound(UsageError):
    """No workflow of that name."""


class WorkflowExists(UsageError):
    """The name belongs to a workflow that differs from the one submitted."""


class UnsupportedConstruct(UsageError):
    """The local engine does not have this Argo construct; the message names it."""


class GateFailed(FoxrunError):
    """The twin run parted."""

    exit_code = 4


class JobFailed(FoxrunError):
    """The trainer failed, was killed, or wrote no result."""

    exit_code = 5


class InfrastructureError(FoxrunError):
    """Storage, network or cluster failed."""

    exit_code = 6
    retryable = True


class DeadlinePassed(InfrastructureError):
    """Something did not end in the time it was given."""


class EngineDied(InfrastructureError):
    """The process that ran a workflow is gone and the workflow is not completed."""


class NoPlace(InfrastructureError):
    """The directory that something runs in is gone, or there is no space left where it writes."""

    retryable = False


class WorkflowDeleted(InfrastructureError):
    """A workflow that was there is gone, or another one has its name now."""


class Unschedulable(InfrastructureError):
    """What is left to run cannot start: no node takes its pods, or there is no such image."""

    retryable = False


class IncompleteRun(FoxrunError):
    """A run directory is missing, cut, or not as its own manifest says."""

    exit_code = 7
