"""`python -m weightdecay.cli`, which torchrun can start."""

from weightdecay.cli import script

script()
