"""Choose the settings of Figure 1's further panels, and write down how fresh seeds will judge them.

    python results/cifar10-small/register_figure_1.py

reads `figure-1`, and writes `figure-1-registered.toml` and `figure-1-judge.toml`. Settings are
chosen as Figure 2's were (register.py): only validation errors are read. It is run, and what it
wrote is committed, before the second stage begins.
"""

import hashlib
import sys
from datetime import UTC, datetime

from register import COMMON, HERE, METHODS, chosen, columns, listed

from weightdecay.results.choosing import Column
from weightdecay.sweeps import Store

SCHEDULES = ("constant", "drops,at=2.4/4.8/6.4")
ADAPTIVE = ("adam", "adamw")
REGISTERED = """\
# Figure 1 on CIFAR-10, second stage: written by register_figure_1.py before any of its runs.
date = {date}
first_stage = {{ runs = {runs}, sha256 = "{digest}" }}
choosing = "as in registered.toml, in each panel"

[judging]
study = "figure-1-judge.toml"
seeds = "1000..1023"  # they chose nothing; those of Figure 2's judging, so that panels are paired
error = "test error after the last epoch; a diverged run counts 0.9"
compared = [  # the cosine's runs are Figure 2's
    "adamw constant - adam constant",
    "adamw drops - adam drops",
    "adam drops - adam constant",
    "adam cosine - adam drops",
    "adamw drops - adamw constant",
    "adamw cosine - adamw drops",
]
estimate = "mean over seeds of ln(e_A / e_B), the same seed for both"
interval = "95 %, as in registered.toml"
better = "the upper end is below 0"
as_good = "the upper end is below ln 1.03"
"""


def panels() -> dict[tuple[str, str], dict[float, Column]]:
    """Return the columns of every panel, by algorithm and schedule."""
    runs = Store(HERE / "figure-1").runs()
    return {
        (name, schedule): columns(
            [run for run in runs if (run.config.algorithm, run.config.schedule) == (name, schedule)]
        )
        for schedule in SCHEDULES
        for name in ADAPTIVE
    }


def main() -> None:
    """Write down what is registered, and the study that will judge it."""
    logs = sorted((HERE / "figure-1" / "log").glob("*.jsonl"))
    text = REGISTERED.format(
        date=datetime.now(UTC).date(),
        runs=len(Store(HERE / "figure-1").runs()),
        digest=hashlib.sha256(b"".join(log.read_bytes() for log in logs)).hexdigest(),
    )
    study = f'{COMMON}seed = "1000..1023"\n'
    for (name, schedule), seen in panels().items():
        best = chosen(seen)
        setting = f"lr = {best.lr!r}\n{METHODS[name]} = {best.decay!r}\n"
        study += f'\n[[grid]]\nalgorithm = "{name}"\nschedule = "{schedule}"\n{setting}'
        text += f'\n[[chosen]]\nalgorithm = "{name}"\nschedule = "{schedule}"\n{setting}'
        text += listed(seen)
    (HERE / "figure-1-registered.toml").write_text(text, encoding="utf-8")
    (HERE / "figure-1-judge.toml").write_text(study, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
