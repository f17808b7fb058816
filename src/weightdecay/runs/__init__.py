"""Trains configurations: yields their records, saves checkpoints and resumes from them."""

from weightdecay.runs.checkpoints import Keep
from weightdecay.runs.ensemble import Ensemble, ensemble
from weightdecay.runs.training import train, train_events

__all__ = ["Ensemble", "Keep", "ensemble", "train", "train_events"]
