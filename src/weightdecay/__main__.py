"""`python -m weightdecay`, which torchrun can start."""

from weightdecay.cli import script

script()
