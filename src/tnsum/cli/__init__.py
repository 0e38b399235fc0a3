"""The command `tnsum`: each subcommand parses, calls one public function, and prints.

Exit codes: 0 done, 1 failed, 2 misused. Errors are one line on the error output.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from tnsum import __version__
from tnsum.cli import add, fit, info, predict, reproduce
from tnsum.topology import printable


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Examples:
  tnsum info network.safetensors
  tnsum add a.safetensors b.safetensors --weights 1,-2 -o sum.safetensors
  tnsum reproduce --protocol paper --splits 5
  tnsum fit photos -o objects.safetensors
  tnsum predict objects.safetensors new_photos
""",
)
@click.version_option(__version__)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def command(debug: bool) -> None:
    """Add tensor networks and keep the result a network; tell images apart by what such sums hold."""


for _module, _name in (
    (add, "add"), (info, "info"), (reproduce, "reproduce"), (fit, "fit"), (predict, "predict")
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
    try:
        code = command.main(arguments, "tnsum", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        code = 2
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "tnsum"
        code = _failed(f"{error.format_message()} (See {path} --help.)", 2)
    except click.Abort:
        code = _failed("stopped.", 1)
    except Exception as error:
        if debug:
            raise
        code = _failed(_in_one_line(error), 1)
    sys.exit(code or 0)


def _prepare_output() -> None:
    """Let every name be printed, whatever the encoding, and nothing fail where there is no output."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - as long as the process
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _in_one_line(error: Exception) -> str:
    from tnsum.errors import NetworkError

    if isinstance(error, NetworkError):
        return str(error)
    if isinstance(error, click.ClickException):
        return error.format_message()
    return f"{type(error).__name__}: {error} (--debug shows where.)"


def _failed(message: str, code: int) -> int:
    click.echo(f"Error: {printable(' '.join(message.split()))}", err=True)
    return code
