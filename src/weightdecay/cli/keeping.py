"""What a run leaves to read: its configuration and records, and beside them its timings."""

import json
from dataclasses import asdict
from pathlib import Path

from weightdecay import files
from weightdecay.records import Environment, Record, RunConfig, Timing


class Kept:
    """`records.jsonl` and `timings.jsonl` in a run's folder, whole whenever they are looked at.

    A resumed training tells its records again from the first on: what stands there already is not
    written again. An epoch that was trained twice has two timings, for it took both.
    """

    def __init__(self, folder: Path, config: RunConfig) -> None:
        self._records, self._timings = folder / "records.jsonl", folder / "timings.jsonl"
        self._there, self._timed = _lines(self._records), _lines(self._timings)
        self._config = config.as_dict()
        self._told = [json.dumps({"config": self._config})]

    def started(self, environment: Environment) -> None:
        """Keep where the run is trained."""
        self._told = [json.dumps({"config": self._config, "environment": asdict(environment)})]

    def record(self, record: Record) -> None:
        """Keep what an epoch came to."""
        self._told.append(json.dumps(asdict(record)))
        if self._there[: len(self._told)] != self._told:
            self._there = list(self._told)
            _write(self._records, self._told)

    def timing(self, timing: Timing) -> None:
        """Keep what an epoch took."""
        self._timed.append(json.dumps(asdict(timing)))
        _write(self._timings, self._timed)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


def _write(path: Path, lines: list[str]) -> None:
    with files.written(path) as file:
        file.writelines(f"{line}\n".encode() for line in lines)
