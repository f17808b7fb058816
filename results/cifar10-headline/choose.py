"""Choose the decays of the long runs by the registered rule, and write the sweeps that train them.

    python results/cifar10-headline/choose.py

reads the store `search` and writes `long-1.toml` to `long-3.toml`. Each has four runs, which one
GPU trains side by side in about a quarter of an hour.
"""

from pathlib import Path

import numpy as np

from weightdecay.records import Run
from weightdecay.sweeps import Store

HERE = Path(__file__).parent
DECAYS = {"adam": "l2", "adamw": "normalized_decay", "sgd": "l2", "sgdw": "normalized_decay"}
# Updates of the search and of the long runs. An epoch leaves out its last, smaller batch.
SHORT, LONG = 15 * 351, 100 * 390
STUDIES = {
    "long-1": (("adam", "adamw"), "1000..1001"),
    "long-2": (("adam", "adamw"), "1002..1003"),
    "long-3": (("sgd", "sgdw"), "1000..1001"),
}
HEAD = """\
# Written by choose.py: decays by the rule of registered.toml. Trained on all 50,000 images.
task = "cifar10"
model = "shakeshake26,width=64"
epochs = 100
batch = 128
validation = "test"
precision = "bfloat16"
keep_missed = true
seed = "{seeds}"
"""
METHOD = """
[[grid]]
algorithm = "{algorithm}"
lr = {lr}
{name} = {decay:.3g}
"""


def main() -> None:
    """Write the three sweeps."""
    runs = Store(HERE / "search").runs()
    for study, (methods, seeds) in STUDIES.items():
        grids = [METHOD.format(**chosen(algorithm, runs)) for algorithm in methods]
        (HERE / f"{study}.toml").write_text(HEAD.format(seeds=seeds) + "".join(grids))


def chosen(algorithm: str, runs: list[Run]) -> dict[str, object]:
    """Return a method's learning rate, and its decay carried to the long runs."""
    name = DECAYS[algorithm]
    own = sorted(
        (run for run in runs if run.config.algorithm == algorithm),
        key=lambda run: getattr(run.config, name),
    )
    decay = lowest(
        [getattr(run.config, name) for run in own], [run.last.validation_error for run in own]
    )
    # A normalized decay is kept; a factor of L2 times the root of the number of updates is.
    carried = decay if name == "normalized_decay" else decay * (SHORT / LONG) ** 0.5
    return {"algorithm": algorithm, "lr": own[0].config.lr, "name": name, "decay": carried}


def lowest(decays: list[float], errors: list[float]) -> float:
    """Return the vertex of the parabola of ln error through the best decay and its neighbours."""
    best = int(np.argmin(errors))
    if best in (0, len(errors) - 1):
        raise ValueError(f"The best decay, {decays[best]:g}, is at an edge. Extend the grid first.")
    near = slice(best - 1, best + 2)
    curvature, slope, _ = np.polyfit(np.log2(decays[near]), np.log(errors[near]), 2)
    return float(2 ** (-slope / (2 * curvature)))


if __name__ == "__main__":
    main()
