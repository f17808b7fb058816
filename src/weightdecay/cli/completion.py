"""`weightdecay completion`: a script for the shell that completes commands, options and files.

shtab (an optional extra) writes it once. Completion does not start Python, which would be slow.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

from weightdecay.cli.arguments import Commands
from weightdecay.cli.printing import echo

_DESCRIPTION = """\
Print a completion script for a shell. Install it with one of:

  weightdecay completion bash > ~/.local/share/bash-completion/completions/weightdecay
  weightdecay completion zsh > ~/.zfunc/_weightdecay      (a folder of $fpath)"""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "completion",
        help="print a completion script for your shell",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="your shell")
    parser.set_defaults(command=_completion)


def _completion(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise ImportError(
            "Completion scripts need shtab. Run `pip install 'weightdecay[completion]'`."
        ) from None
    from weightdecay.cli import parser

    whole = parser()
    _complete_paths(whole, {"FOLDER": shtab.DIRECTORY, "OTHER": shtab.DIRECTORY}, shtab.FILE)
    echo(shtab.complete(whole, options.shell))
    return 0


def _complete_paths(
    parser: argparse.ArgumentParser, known: Mapping[str, object], otherwise: object
) -> None:
    """Complete arguments that are paths as files or folders, in all commands."""
    for action in parser._actions:
        if action.type is Path:
            vars(action)["complete"] = known.get(str(action.metavar), otherwise)
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_paths(command, known, otherwise)
