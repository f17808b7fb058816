"""A page that fills in while runs finish, and the server that sends it. They only read."""

from weightdecay.live.server import App
from weightdecay.live.watching import Analysis, Watched

__all__ = ["Analysis", "App", "Watched"]
