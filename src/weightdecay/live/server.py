"""The web application behind `weightdecay serve`: a page, its data, and its news. It only reads.

It serves no file, so that no path can lead out of the folder. A request must name this server in
its Host header, as an address or as a name that was asked for: a page of another site whose name
was made to point here cannot read it. Elsewhere than on this machine, a token is needed, which the
printed address carries and a cookie keeps.
"""

import ipaddress
import secrets
from collections.abc import Callable, Collection, Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

from weightdecay.live.watching import Watched, as_json

Environ = dict[str, Any]
Start = Callable[[str, list[tuple[str, str]]], Any]
_POLICY = "default-src 'none'; frame-ancestors 'none'"
_SAFE = (
    ("Cache-Control", "no-store"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
)
_TEXT, _HTML, _JSON = (
    f"{kind}; charset=utf-8" for kind in ("text/plain", "text/html", "application/json")
)


class App:
    """A WSGI application. `page` makes the page of a view; `names` are more names of this host."""

    def __init__(
        self,
        watched: Watched,
        page: Callable[[], str],
        *,
        names: Collection[str] = (),
        token: str | None = None,
    ) -> None:
        self._watched, self._page, self._token = watched, page, token
        self._names = {"localhost", *(name.lower() for name in names)}

    def __call__(self, environ: Environ, start: Start) -> Iterable[bytes]:
        """Answer a request."""
        status, kind, body, more = self._answer(environ)
        headers = [
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            # A page has a policy of its own inside. Both apply.
            ("Content-Security-Policy", "frame-ancestors 'none'" if kind == _HTML else _POLICY),
            *_SAFE,
            *more,
        ]
        start(status, headers)
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, environ: Environ) -> tuple[str, str, bytes, list[tuple[str, str]]]:
        def said(status: str, text: str) -> tuple[str, str, bytes, list[tuple[str, str]]]:
            return status, _TEXT, f"{text}\n".encode(), []

        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return said("405 Method Not Allowed", "This server only answers GET and HEAD.")
        if not self._is_here(environ.get("HTTP_HOST", "")):
            return said("421 Misdirected Request", "This server has another name or address.")
        query = parse_qs(environ.get("QUERY_STRING", ""))
        path = environ.get("PATH_INFO", "")
        if self._token is not None and not self._is_allowed(environ):
            if path == "/" and self._fits(query.get("token", [""])[0]):
                kept = f"{_cookie(environ)}={self._token}; HttpOnly; SameSite=Strict; Path=/"
                return "303 See Other", _TEXT, b"", [("Location", "/"), ("Set-Cookie", kept)]
            return said("403 Forbidden", "Open the address that `weightdecay serve` has printed.")
        match path:
            case "/":
                # A name of a file may hold bytes that are no text.
                return "200 OK", _HTML, self._page().encode("utf-8", "xmlcharrefreplace"), []
            case "/data":
                return "200 OK", _JSON, self._watched.view.text, []
            case "/news":
                news = self._watched.news(_first(query, "version"), _number(_first(query, "after")))
                return "200 OK", _JSON, as_json(news), []
        return said("404 Not Found", "There is only /, /data and /news here.")

    def _is_here(self, host: str) -> bool:
        """Whether a Host header names this server; any address does, since no name was resolved."""
        name = host.rpartition(":")[0] if _has_port(host) else host
        if name.lower() in self._names:
            return True
        if name.startswith("[") and name.endswith("]"):
            name = name[1:-1]
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _is_allowed(self, environ: Environ) -> bool:
        try:
            cookies = SimpleCookie(environ.get("HTTP_COOKIE", ""))
        except CookieError:
            return False
        name = _cookie(environ)
        return name in cookies and self._fits(cookies[name].value)

    def _fits(self, token: str) -> bool:
        assert self._token is not None
        return secrets.compare_digest(token.encode(), self._token.encode())


def _cookie(environ: Environ) -> str:
    """Return the name of the cookie. Servers on other ports share the cookies of their host.

    The port is the one that the browser asked for, which a tunnel may have changed.
    """
    host = environ.get("HTTP_HOST", "")
    return f"weightdecay-{host.rpartition(':')[2] if _has_port(host) else 80}"


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdecimal() and (host.count(":") == 1 or "]:" in host)


def _first(query: dict[str, list[str]], name: str) -> str:
    return query.get(name, [""])[0]


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
