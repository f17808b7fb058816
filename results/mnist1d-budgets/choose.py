"""Choose the decays that are carried over budgets, for fresh seeds to judge.

    python results/mnist1d-budgets/choose.py

reads the landscapes of the study `exponents` from `../mnist1d-medium` and writes `carry.toml`, by
the rules of `registered.toml`.
"""

from pathlib import Path

from weightdecay.results import pairs_over
from weightdecay.results.budget_moves import budget_moves
from weightdecay.studies.committed import found_in

HERE = Path(__file__).parent
FACTORS = ("epochs", "data", "batch")
SEEDS = "3000..3011"
HEAD = f"""\
# Written by choose.py: best decays, and what each rule of registered.toml carries there.
task = "mnist1d"
model = "mlp"
algorithm = "adamw"
validation = 1000
evaluate_every = 0
seed = "{SEEDS}"
"""
SETTING = """
[[grid]]
epochs = {epochs}
batch = {batch}
data = {data}
lr = {lr}
normalized_decay = {decays}
"""


def main() -> None:
    """Write the sweep."""
    [seen] = [
        seen
        for found, seen in found_in(HERE.parent, only=("exponents",))
        if found.scale.task == "mnist1d"
    ]
    scapes = [panel.landscape for panel in seen.panels.values()]
    settings: dict[tuple[int, int, int | None, float], set[float]] = {}
    for factor in FACTORS:
        for move in budget_moves(pairs_over(scapes, factor)):
            config = move.used.config
            place = config.epochs, config.batch, config.data, move.lr
            settings.setdefault(place, set()).update((move.best, *move.carried.values()))
    names = ("epochs", "batch", "data", "lr")
    grids = [
        SETTING.format(**dict(zip(names, place, strict=True)), decays=sorted(own))
        for place, own in sorted(settings.items(), key=str)
    ]
    (HERE / "carry.toml").write_text(HEAD + "".join(grids), encoding="utf-8")


if __name__ == "__main__":
    main()
