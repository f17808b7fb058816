"""The paper's optimizers, and helpers to group parameters and to explain what they do."""

from weightdecay.optim.adam import Adam, AdamW
from weightdecay.optim.decouple import decouple
from weightdecay.optim.explanation import explain
from weightdecay.optim.groups import NO_DECAY, parameter_groups
from weightdecay.optim.migrate import from_torch, to_torch
from weightdecay.optim.restarts import SGDWR, AdamWR
from weightdecay.optim.sgd import SGD, SGDW

__all__ = [
    "NO_DECAY",
    "SGD",
    "SGDW",
    "SGDWR",
    "Adam",
    "AdamW",
    "AdamWR",
    "decouple",
    "explain",
    "from_torch",
    "parameter_groups",
    "to_torch",
]
