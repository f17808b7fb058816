"""Finds a learning rate and a weight decay for a long run, mostly by short ones.

It has not been judged on a task that played no part in its design (benchmarks/README.md), so no
command and no page leads here.
"""

from weightdecay.tune.recommendation import Recommendation
from weightdecay.tune.trial import Trial
from weightdecay.tune.tuner import Tuner

__all__ = ["Recommendation", "Trial", "Tuner"]
