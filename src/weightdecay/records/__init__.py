"""What a run is, and what it leaves: plain data that knows no torch, and the one codec for it.

    RunConfig     everything that changes a run's result; its hash is the run's identity
    Record        what an epoch of a run came to
    Environment   where a run was trained: device, versions, commit, a hash of the source
    Run           a configuration with all its records, and its environment
    Started       a run's environment, before its records
    Timing        how long that took: apart, so that results can be compared byte for byte
    Progress      how far a run has come since its last record, for the person who waits
    Notice        something that person should read

`read` returns the finished runs of a sweep's folder, a Parquet file or a CSV file. `codec` turns a
line of a log into a value and back, and `tables` turns runs into a table and back.
"""

from weightdecay.records.config import (
    COUPLED,
    DECAYS,
    DECOUPLED,
    PRECISIONS,
    SCHEDULES,
    SHARED,
    Option,
    RunConfig,
    Spec,
)
from weightdecay.records.events import Event, Notice, Progress, Saving, Started, Timing
from weightdecay.records.readers import FinishedRuns, StoreReader, read
from weightdecay.records.record import (
    Environment,
    Record,
    Run,
    finite,
    or_infinite,
    packed,
    unpacked,
)

__all__ = [
    "COUPLED",
    "DECAYS",
    "DECOUPLED",
    "PRECISIONS",
    "SCHEDULES",
    "SHARED",
    "Environment",
    "Event",
    "FinishedRuns",
    "Notice",
    "Option",
    "Progress",
    "Record",
    "Run",
    "RunConfig",
    "Saving",
    "Spec",
    "Started",
    "StoreReader",
    "Timing",
    "finite",
    "or_infinite",
    "packed",
    "read",
    "unpacked",
]
