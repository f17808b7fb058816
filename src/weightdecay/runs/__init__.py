"""Configurations into records: training, checkpoints, resuming, and what came of it."""

from weightdecay.runs.ensemble import Ensemble, ensemble
from weightdecay.runs.shelf import Keep
from weightdecay.runs.training import train

__all__ = ["Ensemble", "Keep", "ensemble", "train"]
