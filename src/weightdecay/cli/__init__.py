"""The command line: words typed by a person into calls. The only room that prints.

A command imports what trains only when it is run: torch takes seconds to come.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from weightdecay import __version__
from weightdecay.cli import completion, convert, data, landscape, reproduce, run, sweep
from weightdecay.cli.arguments import Parser, as_options
from weightdecay.cli.encoding import spell_out
from weightdecay.cli.printing import say

_HERE = Path(__file__).parents[1]
_MISTAKES = (ImportError, OSError, RuntimeError, TypeError, ValueError)


def parser() -> argparse.ArgumentParser:
    """Return what reads the command line, with all commands."""
    whole = Parser(prog="weightdecay", description="Decoupled weight decay, as the paper means it.")
    whole.add_argument("--version", action="version", version=f"weightdecay {__version__}")
    commands = whole.add_subparsers(required=True, metavar="command")
    for command in (convert, data, run, sweep, landscape, reproduce, completion):
        command.add(commands)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` name, and return its exit status."""
    options = argparse.Namespace()
    try:
        try:
            options = parser().parse_args(arguments)
            status: int = options.command(options)
        finally:
            _flush(sys.stdout)
    except KeyboardInterrupt:
        say("weightdecay: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # as `head` leaves, which has read enough: nothing is said of it
        _flush(sys.stderr, quietly=True)
        return 141  # 128 and the signal's number, as a shell has it
    except _MISTAKES as error:
        if not _explains_itself(error):
            raise
        said = " ".join(as_options(str(error), vars(options)).split())
        say(f"weightdecay: {said}", file=sys.stderr)
        return 2
    return status


def _explains_itself(error: Exception) -> bool:
    """Tell an error of ours, which says what to do, from one in a user's code, which needs a trace.

    What the system refuses names its file, wherever it is raised.
    """
    raised_in = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    return isinstance(error, OSError) or raised_in.is_relative_to(_HERE)


def _flush(stream: TextIO, *, quietly: bool = False) -> None:
    """Write out what was printed, while a failure can still be told.

    What cannot be written is dropped: Python would try again at the end, and complain.
    """
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not quietly:
            raise


def script() -> None:
    """Run the command line as a program."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: a file of ours must not take its number
            setattr(sys, name, Path(os.devnull).open("r+"))  # noqa: SIM115 - to the end
    spell_out(sys.stdout)
    spell_out(sys.stderr)
    sys.exit(main())
