"""Connects to a Ray cluster, or starts one on this machine."""

import logging
import os
import re
import signal
import socket
import threading
from typing import Any

import ray
from ray.exceptions import RayError

from weightdecay.sweeps import local

# Seconds within which a cluster must answer.
_REACHED_WITHIN = 10.0
# What to do if no cluster listens, if one does not let us in, and if none can be started. Ray does
# not answer a client without its token, and does not say why.
_START = "`ray start --head` starts one; without an address one is started for the sweep."
_ENTER = (
    "Something listens there. If the cluster uses a token, it answers only clients that have it: "
    "set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN, or copy ~/.ray/auth_token from its head node. The "
    "Ray versions of cluster and client must match."
)
_ALONE = "Ray stores a token in ~/.ray, which must be writable; RAY_AUTH_MODE=disabled needs none."


def connect(address: str, workers: int | None) -> None:
    """Join a cluster, or start one here if the address is "local"; keep Ray from printing."""
    if address.startswith("ray://"):
        raise ValueError(
            f"`address` must be that of a cluster, such as auto or host:6379, got {address!r}. A "
            "Ray client cannot stream messages: start the sweep on a machine of the cluster."
        )
    alone: dict[str, Any] = {}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # do not report usage unasked
        alone = {"num_cpus": workers or local.cores(), "include_dashboard": False}
    terminated = signal.getsignal(signal.SIGTERM)
    cure = _START
    try:
        if not alone:
            _check_reachable(address)
            cure = _ENTER
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **alone)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        reason = one_line(str(error)).rstrip(".")
        if alone:
            raise ConnectionError(
                f"Ray did not start on this machine: {reason}. {_ALONE}"
            ) from error
        raise ConnectionError(
            f"`address` must be that of a running Ray cluster, got {address!r}: {reason}. {cure}"
        ) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminated)  # Ray has installed its own handler
    # Ray prints the deaths of workers to stdout whatever its log level is.
    ray._private.worker._worker_logs_enabled = False


def _check_reachable(address: str) -> None:
    """Raise if nothing listens there: Ray would try for minutes."""
    found = ray._private.services.canonicalize_bootstrap_address(address) or address
    host, _, port = found.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=_REACHED_WITHIN):
        pass


def one_line(text: str) -> str:
    """Return a message of Ray without colours and line breaks."""
    return " ".join(re.sub(r"\x1b\[\d*m", "", text).split())
