"""`weightdecay completion`: what a shell needs to complete commands, options and files.

The script is written once, by shtab (an optional extra), and complete in itself: a shell that asked
Python at every press of a key would wait for it.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path

from weightdecay.cli.arguments import Commands
from weightdecay.cli.printing import say

_DESCRIPTION = """\
Print a script that lets a shell complete what is typed after `weightdecay`:

  weightdecay completion bash > ~/.local/share/bash-completion/completions/weightdecay
  weightdecay completion zsh > ~/.zfunc/_weightdecay      (a folder of $fpath)"""


def add(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=("bash", "zsh", "tcsh"), help="the shell to complete in")
    parser.set_defaults(command=_completion)


def _completion(options: argparse.Namespace) -> int:
    try:
        import shtab
    except ImportError:
        raise ImportError(
            "A completion script needs shtab to write it: pip install 'weightdecay[completion]'"
        ) from None
    from weightdecay.cli import parser

    whole = parser()
    _complete_paths(whole, {"FOLDER": shtab.DIRECTORY, "OTHER": shtab.DIRECTORY}, shtab.FILE)
    say(shtab.complete(whole, options.shell))
    return 0


def _complete_paths(
    parser: argparse.ArgumentParser, known: Mapping[str, object], otherwise: object
) -> None:
    """Have arguments that are paths completed as files or folders, in all commands."""
    for action in parser._actions:
        if action.type is Path:
            vars(action)["complete"] = known.get(str(action.metavar), otherwise)
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                _complete_paths(command, known, otherwise)
