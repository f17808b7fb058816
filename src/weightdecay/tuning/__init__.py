"""Finds a learning rate and a weight decay for a long run, mostly by short ones."""

from weightdecay.tuning.recommendation import Recommendation, Rule
from weightdecay.tuning.trial import Trial
from weightdecay.tuning.tuner import Tuner

__all__ = ["Recommendation", "Rule", "Trial", "Tuner"]
