"""What a run is and what it leaves behind, as plain data without torch, and the codec for both.

    RunConfig     everything that changes a run's result; its hash is the run's identity
    Record        the results of one evaluated epoch
    Environment   where a run was trained: device, versions, commit, a hash of the source
    Run           a configuration with all its records and its environment
    Started       a run's environment, sent before its records
    Timing        how long a record took: separate, so that results can be compared byte for byte
    Progress      how far a training is, for display
    Notice        a message for the user

`read` returns the finished runs of a sweep folder, a Parquet file or a CSV file. `codec` converts
log lines to values and back, and `tables` converts runs to a table and back.
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
