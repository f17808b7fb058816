"""`weightdecay data`: the data sets in the cache, fetched and checked."""

import argparse
import sys
import time

from weightdecay.cli.arguments import Commands
from weightdecay.cli.output import add_output_options, say_json
from weightdecay.cli.printing import say, say_table
from weightdecay.cli.progress import Bars

_MADE = "made by code, nothing to fetch"


def add(commands: Commands) -> None:
    """Add the commands."""
    parser = commands.add_parser(
        "data",
        help="fetch and check data sets",
        description="Bring data sets into the cache, and see what is in it.",
    )
    actions = parser.add_subparsers(required=True, metavar="action")
    fetch = actions.add_parser(
        "fetch",
        help="bring a data set into the cache",
        description="Bring a data set into the cache, going on where an earlier try broke off.",
    )
    fetch.add_argument("name", metavar="NAME", help="the data set, as `weightdecay data check` has")
    fetch.add_argument(
        "--from",
        dest="source",
        metavar="FOLDER",
        help="take it from a folder or an archive instead of the network",
    )
    add_output_options(fetch)
    fetch.set_defaults(command=_fetch)
    check = actions.add_parser(
        "check",
        help="say what is in the cache, and whether it is right",
        description="Compare every file in the cache with what it must be. The exit status is 1 "
        "where one is wrong, or missing from a data set that is named.",
    )
    check.add_argument("names", nargs="*", metavar="NAME", help="a data set; without any, all")
    add_output_options(check)
    check.set_defaults(command=_check)


def _fetch(options: argparse.Namespace) -> int:
    from weightdecay import tasks
    from weightdecay.tasks import cache

    try:
        with Bars(quiet=options.quiet, at_once=False) as bars:
            meter = _Meter()
            for step in tasks.fetch(options.name, options.source):
                share = step.done / step.total if step.total else None
                if "@" in step.name and not step.done and not options.quiet:
                    bars.say(f"The first source cannot be reached: npm's {step.name} is taken.")
                bars.draw([(share, meter.shown(step.name, step.done, step.total))])
    except KeyboardInterrupt:
        say("Stopped. The same command goes on from what has come so far.", file=sys.stderr)
        return 130
    except tasks.UnreachableError as error:
        say(f"weightdecay: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    made = not tasks.check(options.name)
    folder = None if made else cache.folder(options.name)
    if options.json:
        say_json({"set": options.name, "folder": folder})
    else:
        say(f"{options.name}: {_MADE if made else f'in {folder}'}")
    return 0


class _Meter:
    """How fast the bytes of a file come."""

    def __init__(self) -> None:
        self._name, self._first, self._begun = "", 0, 0.0

    def shown(self, name: str, done: int, total: int | None) -> str:
        """Return how much of a file has come, and the speed since it was first heard of."""
        now = time.monotonic()
        if name != self._name:
            self._name, self._first, self._begun = name, done, now
        megabytes = f"{done / 1e6:.1f}" + (f" of {total / 1e6:.1f}" if total else "")
        seconds = now - self._begun
        speed = (done - self._first) / 1e6 / seconds if seconds else 0.0
        return f"{name}  {megabytes} MB  {speed:.1f} MB/s"


def _check(options: argparse.Namespace) -> int:
    from weightdecay import tasks
    from weightdecay.tasks import cache

    rows = []
    wrong = False
    for name in options.names or tasks.NAMES:
        files = tasks.check(name)
        for file, fault in files:
            there = cache.folder(name, file).is_file()
            wrong |= fault is not None and (there or bool(options.names))
            rows.append((name, file, (fault or "ok") if there else "missing"))
        if not files:
            rows.append((name, "–", _MADE))
    if options.json:
        keys = ("set", "file", "state")
        found = [dict(zip(keys, row, strict=True)) for row in rows if row[2] != _MADE]
        say_json({"cache": cache.folder(), "files": found, "ok": not wrong})
        return int(wrong)
    say_table([("set", "file", "state"), *rows])
    if options.quiet:
        return int(wrong)
    if wrong:
        said = "`weightdecay data fetch` with the set's name brings what is wrong or missing."
        say(said, file=sys.stderr)
    say(f"The cache is {cache.folder()}; ${cache.VARIABLE} names another.")
    return int(wrong)
