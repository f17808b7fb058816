"""`weightdecay serve`: the page of `weightdecay report`, which fills in while runs finish."""

import argparse
import ipaddress
import logging
import os
import secrets
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from weightdecay.cli import sources
from weightdecay.cli.arguments import Commands, whole
from weightdecay.cli.landscape import add_reader, foreign, gathered
from weightdecay.cli.printing import echo
from weightdecay.cli.report import analysed, command_of

if TYPE_CHECKING:
    from weightdecay.live import Analysis
    from weightdecay.studies.so_far import SoFar

_DESCRIPTION = """\
Serve a page about runs to browsers: cells fill in while a sweep, a reproduction
or a tuner trains, with workers, speed, time left and failures. It only reads,
so it may be started and stopped at any time. Ctrl-C stops it."""
_PORT = 8642
_TABLES = (".csv", ".parquet")
_THREADS = 8  # that answer requests; more viewers take turns


def add(commands: Commands) -> None:
    """Add the command."""
    parser = add_reader(
        commands,
        "serve",
        brief="show runs in a browser while they finish",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="the address to listen on (default 127.0.0.1, which only this machine can reach); "
        "any other address needs a token, which the printed address carries",
    )
    parser.add_argument(
        "--port",
        type=whole,
        default=_PORT,
        help=f"the port to listen on; 0 takes a free one (default {_PORT})",
    )
    parser.set_defaults(command=_serve)


def _serve(options: argparse.Namespace) -> int:
    try:
        from waitress.server import create_server
    except ImportError:
        raise ImportError(
            "`weightdecay serve` needs waitress: pip install 'weightdecay[serve]'"
        ) from None
    from weightdecay.live import App, Watched
    from weightdecay.site.interactive import fixed_data, live_page
    from weightdecay.studies.so_far import SoFar

    _check(options.source)
    sources.check(options.source, foreign(options))
    if not 0 <= options.port < 2**16:
        raise ValueError(f"`port` must be below 65536, got {options.port}.")
    command = command_of(options, "serve")
    token = None if is_loopback(options.host) else secrets.token_urlsafe(24)
    so_far = SoFar(options.source)
    watched = Watched(
        options.source,
        lambda: analysis(options, so_far),
        began=secrets.token_hex(4),
        fixed=fixed_data(command),
        of=options.of,
    )
    title = f"Learning rate and weight decay: {options.source.name}"
    app = App(
        watched,
        lambda: live_page(title, watched.view.data, command=command),
        names=[options.host, socket.gethostname()],
        token=token,
    )
    # That viewers take turns is no news.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    with _listening(options.host, options.port) as listening:
        server = create_server(app, sockets=[listening], threads=_THREADS, ident=None)
        for sign in (signal.SIGINT, signal.SIGTERM):  # a shell's background job ignores the first
            signal.signal(sign, _interrupt)
        if not options.quiet:
            echo(f"Open {_address(options.host, listening.getsockname()[1], token)}", flush=True)
            echo("Press Ctrl-C to stop.", flush=True)
        with suppress(OSError, AttributeError):
            os.nice(10)  # from now on, who trains comes first
        server.run()  # until Ctrl-C
        server.close()
    if not options.quiet:
        echo("Stopped. The runs go on.")
    return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _check(source: Path) -> None:
    """Raise if a source cannot become one that can be shown. A folder may still have to begin."""
    from weightdecay.live.reading import has_begun
    from weightdecay.records.readers import not_a_sweep

    if source.is_dir() and not has_begun(source) and any(source.iterdir()):
        raise not_a_sweep(source, lacks="plan.jsonl")
    if not source.exists() and (source.suffix in _TABLES or not source.parent.is_dir()):
        raise FileNotFoundError(
            f"{source} does not exist. Give the folder of a sweep, or a CSV or Parquet file of "
            "runs. The folder may not exist yet, if the one that it will be in does."
        )


def analysis(options: argparse.Namespace, so_far: "SoFar") -> "Analysis":
    """Read the source and recommend settings; `so_far` judges claims of the paper."""
    return analysed(*gathered(options), so_far)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(host: str, port: int, token: str | None) -> str:
    """Return what to open in a browser. An address that means all of them is this host's name."""
    with suppress(ValueError):
        one = ipaddress.ip_address(host)
        if one.is_unspecified:
            host = socket.gethostname()
        elif one.version == 6:
            host = f"[{host}]"
    return f"http://{host}:{port}/{f'?token={token}' if token else ''}"


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens. On all addresses of IPv6, it listens on those of IPv4 too."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        is_any = family == socket.AF_INET6 and ipaddress.ip_address(address[0]).is_unspecified
        both = is_any and socket.has_dualstack_ipv6()
        return socket.create_server((host, port), family=family, dualstack_ipv6=both)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[0]
        raise OSError(
            f"`weightdecay serve` cannot listen on port {port} of {host}: {why}. If another "
            "program uses the port, --port 0 takes a free one."
        ) from error
