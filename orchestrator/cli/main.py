"""``foxrun``: finds the command, loads it alone, and turns every error into a message and an exit code."""

from __future__ import annotations

import io
import os
import re
import sys
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from orchestrator.errors import FoxrunError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# A command is imported when it is called; for the list of commands its help is here once more (a test compares them),
# because importing seventeen modules would cost more than the answer.
COMMANDS: dict[str, dict[str, str]] = {
    "Run": {
        "submit": "Run a training, or with --regression-pair the same one twice, and say what it came to.",
        "check": "The gate alone, here: run the trainer twice, the second time hostile, and compare every bit.",
        "compare": "Compare two runs (directories) or two metric files, bit by bit.",
        "localize": "Find where two runs part: step, operation with its line, cause, and a remedy that is tried.",
    },
    "Guard": {
        "sweep": "Run a pair for each of several seeds, and say in one table which of them are exact.",
        "hook": "Refuse commits that break determinism: a git hook that runs the gate on what is staged.",
        "golden": "Keep the bits of a configuration in the repository, and find the commit that changed them.",
    },
    "Measure": {
        "cost": "Measure what each mode costs on this machine, against mode 0, in one run.",
    },
    "Look": {
        "list": "List workflows, the newest first.",
        "get": "Show one workflow as a tree of its parts.",
        "watch": "Follow a workflow to its end, and exit with its verdict.",
        "logs": "Print what the parts of a workflow wrote.",
        "history": "List what workflows came to, deleted ones too, the newest first; or draw all as one page.",
        "report": "Write the HTML report of a workflow, of a run, or of two runs, and print its path.",
    },
    "Control": {
        "stop": "Stop workflows; what they wrote is kept.",
        "terminate": "End workflows of a cluster at once, without their exit handlers.",
        "retry": "Run the failed parts of a workflow again, and follow it.",
        "resubmit": "Run a workflow anew from its beginning, under a new name.",
        "delete": "Delete workflows and everything that they wrote.",
    },
    "Define": {
        "render": "Print the Workflow that a submit would send, as YAML.",
        "lint": "Say whether Workflow files are valid and the local engine can run them.",
    },
    "Set up": {
        "seeds": "Put the verdicts of several seeds into one table, and say what no seed reaches (a sweep calls this).",
        "alert": "Tell the alert channels what a workflow came to (the exit handler calls this).",
        "status": "Tell the commit's host, GitHub or GitLab, what a workflow came to: a status and a comment.",
        "config": "Show every setting: value, unit, default, why, and which source won.",
        "completion": "Print what makes a shell complete commands, options and the names of workflows.",
        "doctor": "Check that this machine can run foxrun; each trouble comes with its remedy.",
        "version": "Print the versions of foxrun and of what it stands on.",
    },
}
NAMES = tuple(name for group in COMMANDS.values() for name in group)
GLOBAL = ("--engine", "--namespace", "--context", "--kubeconfig", "--argo-server")
SIGPIPE_EXIT = 141
INTERRUPT_EXIT = 130


class LazyGroup(click.Group):
    """Commands that are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of COMMANDS."""
        return list(NAMES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module; it is named like the command."""
        if cmd_name not in NAMES:
            return None
        command = getattr(import_module(f"orchestrator.cli.{cmd_name}"), "command")  # noqa: B009
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name for an unknown one."""
        if args and args[0] not in NAMES and not args[0].startswith("-"):
            from orchestrator.settings import did_you_mean

            raise click.UsageError(f"there is no command {args[0]!r}{did_you_mean(args[0], NAMES)}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Commands with their help, of which none is imported; the group's options after a dash."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        from click.shell_completion import CompletionItem

        every = (item for group in COMMANDS.values() for item in group.items())
        return [CompletionItem(name, help=text) for name, text in every if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by what one wants of them."""
        for title, commands in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl(list(commands.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="foxrun", message="%(prog)s %(version)s", help="Print the version.")
@click.option("--engine", type=click.Choice(["local", "argo"]), help="Where workflows run: this machine or a cluster.")
@click.option("--namespace", help="Namespace of the workflows.")
@click.option("--context", help="Context of the kubeconfig; selects the argo engine.")
@click.option("--kubeconfig", metavar="FILE", help="Without it: KUBECONFIG, ~/.kube/config, or in-cluster.")
@click.option(
    "--argo-server", metavar="URL", help="argo-server instead of the Kubernetes API; selects the argo engine."
)
def cli(**_: str | None) -> None:
    """Same commit, same seed, same parameters, same bits; and when not, the step, the leaf and what to do.

    \b
    foxrun submit --sha HEAD --regression-pair
    foxrun COMMAND --help

    Exit codes: 0 identical or within tolerance, 2 usage, 3 drift, 4 gate failed, 5 job failed, 6 infrastructure,
    7 incomparable or incomplete.
    """


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point: never a traceback, never a half-printed line on a closed pipe."""
    _open_standard_streams()
    if os.environ.get("_FOXRUN_COMPLETE"):
        from orchestrator.cli.completion import answer

        answer()
    for stream in (sys.stdout, sys.stderr):
        # What the locale's encoding does not have is shown as an escape: no name in a file may end the command.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = execute(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = SIGPIPE_EXIT
    if code == SIGPIPE_EXIT:
        # Python flushes once more when it ends; into the closed pipe that would print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _open_standard_streams() -> None:
    """Whatever of stdin, stdout, stderr the caller closed leads nowhere: no file opened later may get its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number is this one
    # Python's own stand-in for a closed stream is None, whatever typeshed says.
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def execute(arguments: list[str]) -> int:
    """Run one command line; returns its exit code."""
    try:
        with cli.make_context("foxrun", hoisted(arguments)) as ctx:
            cli.invoke(ctx)
            return 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return 2
    except click.ClickException as error:
        path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "foxrun"
        _complain(_sentence(error.format_message()), f"{path} --help")
        return error.exit_code
    except FoxrunError as error:
        _complain(str(error), error.remedy)
        return error.exit_code
    except BrokenPipeError:
        return SIGPIPE_EXIT
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPT_EXIT
    except Exception as error:
        return _unexpected(error)


def hoisted(arguments: list[str]) -> list[str]:
    """The same with the options of `foxrun` itself in front: as with kubectl they may stand anywhere before `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    front: list[str] = []
    rest: list[str] = []
    position = 0
    while position < end:
        name, equals, _ = arguments[position].partition("=")
        width = 2 if name in GLOBAL and not equals and position + 1 < end else 1
        (front if name in GLOBAL else rest).extend(arguments[position : position + width])
        position += width
    return front + rest + arguments[end:]


def _sentence(text: str) -> str:
    text = text.strip().removesuffix(".")
    return text[:1].lower() + text[1:]


def _complain(message: str, remedy: str) -> None:
    from orchestrator.printable import printable_lines

    click.echo(click.style("error:", fg="red", bold=True) + f" {printable_lines(message)}", err=True)
    if remedy:
        click.echo(f"  -> {printable_lines(remedy)}", err=True)


def _unexpected(error: Exception) -> int:
    from foxrun.problems import ContractError

    if isinstance(error, ContractError):
        where = ": ".join(part for part in (f"{error.file}" + (f", line {error.line}" if error.line else ""),) if part)
        _complain(f"{where}: {error.what}" if where else error.what, error.remedy)
        return 7
    if isinstance(error, FileNotFoundError) and not error.filename and (gone := _gone()):
        _complain(gone, "go to one that is there: cd")
        return 2
    if isinstance(error, OSError) and error.strerror and not os.environ.get("FOXRUN_DEBUG"):
        _complain(
            f"{error.strerror}: {error.filename}" if error.filename else error.strerror,
            "free some space or mend the access, then run it again (foxrun doctor checks this machine)",
        )
        return 6
    if os.environ.get("FOXRUN_DEBUG"):
        traceback.print_exc()
    _complain(
        f"foxrun itself failed: {type(error).__name__}: {masked(' '.join(str(error).split()))}",
        f"this is a bug; please report it{_crash_file()}",
    )
    return 1


def _gone() -> str:
    """What is said of a working directory that somebody deleted; "" where it is there."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return f"the working directory {os.environ.get('PWD', '.')} is gone"
    return ""


def _crash_file() -> str:
    """Keep the traceback, where that is possible; returns ``" with FILE"``."""
    from orchestrator.settings import Settings, home_directory

    try:
        folder = home_directory(Settings(home=os.environ.get("FOXRUN_HOME", ""))) / "crashes"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        file.write_text(masked(traceback.format_exc()), "utf-8")
    except OSError:
        return " with the output of FOXRUN_DEBUG=1"
    return f" with {Path(file)}"


def masked(text: str) -> str:
    """The text without what alert channels and hosts are reached by."""
    for word in os.environ.get("FOXRUN_ALERTS", "").split():
        for secret in (word, re.sub(r"\A[\w.-]+=", "", word)):
            text = text.replace(secret, "***")
    token = os.environ.get("FOXRUN_HOST_TOKEN", "")
    return text.replace(token, "***") if token else text
