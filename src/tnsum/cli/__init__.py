"""The command `tnsum`: each subcommand parses, calls one public function, and prints.

Exit codes: 0 done, 1 failed, 2 misused, 130 stopped. What went wrong is one line on the error output,
and so is what the library warns of.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TextIO, cast

import click

from tnsum import __version__
from tnsum.cli import add, draw, figures, fit, info, predict, reproduce
from tnsum.cli._output import Output, OutputError, Stopped
from tnsum.errors import NetworkError, UnsuitableError
from tnsum.topology import printable

_SHOWN_WHERE = "(--debug shows where.)"


class _Group(click.Group):
    """Commands that say themselves that they were stopped: click puts an empty line before."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Stopped("Stopped.") from None


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  tnsum info network.safetensors
  tnsum add a.safetensors b.safetensors --weights 1,-2 -o sum.safetensors
  tnsum draw sum.safetensors -o sum.svg
  tnsum reproduce --protocol paper --splits 5
  tnsum fit photos -o objects.safetensors
  tnsum predict objects.safetensors new_photos

\b
Exit codes:
  0    done
  1    failed: a file is damaged or not what it must be, or something cannot be read or written
  2    misused: an option or argument is wrong, or names nothing, or a folder that is not for this
       (an empty one, images of one class only, one image of a class)
  130  stopped by Ctrl-C
""",
)
@click.version_option(__version__)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(debug: bool) -> None:
    """Add tensor networks and keep the result a network; tell images apart by what such sums hold."""


for _module, _name in (
    (add, "add"), (info, "info"), (draw, "draw"), (reproduce, "reproduce"), (figures, "figures"),
    (fit, "fit"), (predict, "predict"),
):  # fmt: skip
    command.add_command(getattr(_module, _name))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit code."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    # --debug is understood wherever it stands before `--`.
    end = arguments.index("--") if "--" in arguments else len(arguments)
    debug = "--debug" in arguments[:end]
    arguments = [a for a in arguments[:end] if a != "--debug"] + arguments[end:]
    _prepare_output()
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        code = _code_of(arguments, debug)
    sys.exit(code)


def _code_of(arguments: list[str], debug: bool) -> int:
    """Run the command; whatever goes wrong is a line and an exit code, or raised for debugging."""
    try:
        return _called(arguments)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "tnsum"
        return _failed(f"{error.format_message()} (See {path} --help.)", 2)
    except Stopped as error:
        # A terminal shows ^C where the line begins.
        click.echo(f"{chr(10) * sys.stderr.isatty()}{error.message}", err=True)
        return 130
    except Exception as error:
        if debug:
            raise
        if isinstance(error, OutputError):
            _give_up_output()
        return _failed(_in_one_line(error), 2 if isinstance(error, UnsuitableError) else 1)


def _called(arguments: list[str]) -> int:
    try:
        code = command.main(arguments, "tnsum", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 2
    sys.stdout.flush()
    return int(code or 0)


def _prepare_output() -> None:
    """Let every name be printed, whatever the encoding, and nothing fail where there is no output."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if not isinstance(sys.stdout, Output):
        sys.stdout = cast("TextIO", Output(sys.stdout))


def _give_up_output() -> None:
    """Have what could not be written go nowhere: it is tried again when the process ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _in_one_line(error: Exception) -> str:
    if isinstance(error, NetworkError):
        return str(error)
    if isinstance(error, click.ClickException):
        return error.format_message()
    if isinstance(error, OSError) and error.filename:
        return f"{os.fsdecode(error.filename)!r}: {error.strerror}. {_SHOWN_WHERE}"
    return f"{type(error).__name__}: {error} {_SHOWN_WHERE}"


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    click.echo(f"Warning: {_as_line(str(message))}", err=True)


def _failed(message: str, code: int) -> int:
    click.echo(f"Error: {_as_line(message)}", err=True)
    return code


def _as_line(message: str) -> str:
    return printable(" ".join(message.split()))
