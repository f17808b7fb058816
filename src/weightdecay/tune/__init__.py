"""Finds a learning rate and a weight decay for a long run, mostly by short ones.

It is not better than other tuners yet (benchmarks/README.md), so no command and no page leads here.
"""

from weightdecay.tune.recommendation import Recommendation, Rule
from weightdecay.tune.trial import Trial
from weightdecay.tune.tuner import Tuner

__all__ = ["Recommendation", "Rule", "Trial", "Tuner"]
