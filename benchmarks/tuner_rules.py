"""How often a tuner is right about the rule by which λ is carried to other epochs.

    python -m benchmarks.tuner_rules --runs 3 6 12 24 --noise 0.02 0.05 --lives 400

Each life has a landscape whose best λ is ∝ epochs^(−p), with p = 0 or 1/2 at random: a bowl with a
cliff, which is none of the tuner's own shapes. So many runs at each of two lengths, a factor of
four apart, are drawn near its best setting. Lives in which the belief gives a rule at least 95 %
are counted, and those of them in which it is the true one. With `--longer 4`, there are four times
as many runs of the longer ones.
"""

import argparse
import math
from collections.abc import Sequence

import numpy as np

from weightdecay.tune import Tuner
from weightdecay.tune.carrying import SURE, believed
from weightdecay.tune.choosing import belief_of
from weightdecay.tune.trial import Cell, Outcome

_APART = 2  # doublings between the two lengths


def life(seed: int, runs: int, noise: float, longer: int = 1) -> tuple[float, bool]:
    """Return how probable the rule that keeps λ_norm is said to be, and whether it is true."""
    draw = np.random.default_rng([seed, runs])
    updates = int(draw.choice([25, 100, 400]))
    algorithm = ("adamw", "sgdw")[seed % 2]
    space = Tuner(64, updates_per_epoch=updates, algorithm=algorithm).space
    power = float(draw.choice([0.0, 0.5]))
    lr = math.sqrt(space.lrs[0] * space.lrs[-1]) * 2 ** draw.normal()
    decay = 1.5 / math.sqrt(updates) * 2 ** draw.normal()
    of_lr, of_decay, cliff = np.array([0.02, 0.01, 0.3]) * 2 ** draw.normal(0, 0.7, 3)
    long = space.longest - int(draw.integers(2))
    told = {}
    for rung in (long - _APART, long):
        epochs = space.ladder[rung]
        best = decay * (epochs / 64) ** (0.5 - power)  # its λ_norm
        for seed_of_run in range(runs * longer if rung == long else runs):
            x, z = draw.normal(0, [1.0, 1.2])
            row = int(np.abs(np.log2(np.array(space.lrs) / lr) - x).argmin())
            column = int(np.abs(np.log2(np.array(space.decays) / decay) - z).argmin())
            x, z = math.log2(space.lrs[row] / lr), math.log2(space.decays[column] / best)
            height = of_lr * x**2 + of_decay * z**2 + cliff * max(z - 0.5, 0)
            error = 0.2 * math.exp(height) * max(1 + noise * draw.normal(), 0.3)
            cell = Cell(rung, row * len(space.decays) + column, seed_of_run)
            told[cell] = Outcome(error, epochs)
    belief = belief_of(space, told, None)
    return believed(space, belief, int(belief.mean(space.long).argmin())), power == 0.5


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, and print one line per number of runs and size of noise."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--runs", type=int, nargs="+", default=[3, 6, 12])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.02, 0.05])
    parser.add_argument("--longer", type=int, default=1)
    parser.add_argument("--lives", type=int, default=400)
    given = parser.parse_args(arguments)
    for noise in given.noise:
        for runs in given.runs:
            lives = [life(seed, runs, noise, given.longer) for seed in range(given.lives)]
            sure = [one for one in lives if max(one[0], 1 - one[0]) >= SURE]
            right = sum((normalized > 0.5) == true for normalized, true in sure)
            print(
                f"{runs} runs at each length, noise {noise:g}: sure in {len(sure)} of "
                f"{len(lives)} lives, right in {right} of them",
                flush=True,
            )


if __name__ == "__main__":
    main()
