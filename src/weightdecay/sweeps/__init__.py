"""Trains the cells of a grid, on local processes or on Ray, and records them in a store."""

from weightdecay.sweeps.events import CellFailed, Idle, SweepEvent, Working
from weightdecay.sweeps.grids import grid, read_study
from weightdecay.sweeps.inprocess import InProcess
from weightdecay.sweeps.local import Local
from weightdecay.sweeps.status import Status
from weightdecay.sweeps.store import Store
from weightdecay.sweeps.sweeping import sweep, sweep_events

__all__ = [
    "CellFailed",
    "Idle",
    "InProcess",
    "Local",
    "Status",
    "Store",
    "SweepEvent",
    "Working",
    "grid",
    "read_study",
    "sweep",
    "sweep_events",
]
