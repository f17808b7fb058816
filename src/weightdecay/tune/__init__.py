"""Finds a learning rate and a weight decay for a long run, mostly by short ones: docs/tuning.md.

`Tuner` is for a training loop of your own, `Tuning` for a task of `weightdecay.tasks`.
"""

from weightdecay.tune.recommendation import Recommendation
from weightdecay.tune.sweeping import Tuning
from weightdecay.tune.trial import Trial
from weightdecay.tune.tuner import Tuner

__all__ = ["Recommendation", "Trial", "Tuner", "Tuning"]
