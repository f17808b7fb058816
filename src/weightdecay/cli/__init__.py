"""The command line. It turns what a person types into calls, and prints the results.

Commands import torch only when they train: importing it takes seconds.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from weightdecay import __version__
from weightdecay.cli import (
    completion,
    convert,
    data,
    judge,
    landscape,
    register,
    report,
    reproduce,
    run,
    serve,
    sweep,
    tune,
)
from weightdecay.cli.arguments import Parser, as_options
from weightdecay.cli.encoding import spell_out
from weightdecay.cli.printing import echo

_HERE = Path(__file__).parents[1]
_MISTAKES = (ImportError, OSError, RuntimeError, TypeError, ValueError)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line, with all commands."""
    whole = Parser(prog="weightdecay", description="Decoupled weight decay, as in the paper.")
    whole.add_argument("--version", action="version", version=f"weightdecay {__version__}")
    commands = whole.add_subparsers(required=True, metavar="command")
    training, reading = (run, sweep, tune), (landscape, report, serve)
    for command in (convert, data, *training, *reading, register, judge, reproduce, completion):
        command.add(commands)
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command in `arguments`, and return its exit status."""
    options = argparse.Namespace()
    try:
        try:
            options = parser().parse_args(arguments)
            status: int = options.command(options)
        finally:
            _flush(sys.stdout)
    except KeyboardInterrupt:
        echo("weightdecay: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader has closed the pipe, as `head` does: no error
        _flush(sys.stderr, quietly=True)
        return 141  # 128 + SIGPIPE, as a shell reports it
    except _MISTAKES as error:
        if not _explains_itself(error):
            raise
        # One line, except that a list keeps its lines.
        parts = as_options(str(error), vars(options)).split("\n  ")
        message = "\n  ".join(" ".join(part.split()) for part in parts)
        echo(f"weightdecay: {message}", file=sys.stderr)
        return 2
    return status


def _explains_itself(error: Exception) -> bool:
    """Whether an error needs no traceback: it is ours and says what to do, or the system's.

    An error in a user's own code does need one. The system's errors name their file.
    """
    raised_in = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    return isinstance(error, OSError) or raised_in.is_relative_to(_HERE)


def _flush(stream: TextIO | None, *, quietly: bool = False) -> None:
    """Flush a stream while a failure can still be reported; None is a process without a console.

    After a failure the stream goes to /dev/null: otherwise Python flushes again at exit and fails.
    """
    if stream is None:
        return
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if not quietly:
            raise


def script() -> None:
    """Run the command line as a program."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # closed: no file of ours may get its descriptor
            setattr(sys, name, Path(os.devnull).open("r+"))  # noqa: SIM115 - to the end
    spell_out(sys.stdout)
    spell_out(sys.stderr)
    sys.exit(main())
