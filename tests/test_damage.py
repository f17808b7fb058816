"""What was changed in a sweep's files since it was written is noticed, left out and told."""

import json
import os
import random
import re
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from tests.test_sweeps import Scripted, cell, done, invented, names, swept
from weightdecay.cli import main
from weightdecay.records import Environment, Notice, Run, RunConfig
from weightdecay.records import config as definition
from weightdecay.records.codec import Cost, as_line
from weightdecay.records.log import Log
from weightdecay.records.tables import imported
from weightdecay.sweeps import Store
from weightdecay.sweeps.engine import Ended, Finished, Job, Message
from weightdecay.sweeps.merging import merge
from weightdecay.sweeps.status import store_status

CELLS = [cell(seed, epochs=2) for seed in range(4)]
CELL = CELLS[0].identity
Output = pytest.CaptureFixture[str]
OLD = Path(__file__).parent / "stores" / "2026-10"
COMMITTED = Path(__file__).parent.parent / "results" / "cifar10-small" / "figure-2"


def lines_of(folder: Path) -> list[bytes]:
    return (folder / "log" / "000001.jsonl").read_bytes().splitlines(keepends=True)


def write(folder: Path, lines: list[bytes]) -> None:
    (folder / "log" / "000001.jsonl").write_bytes(b"".join(lines))


def without_checksum(line: bytes) -> bytes:
    """Return a line as it was written before lines had checksums."""
    return re.sub(rb', "crc32": "[0-9a-f]{8}"\}$', b"}", line)


def first_result(lines: list[bytes]) -> int:
    return next(n for n, line in enumerate(lines) if line.startswith(b'{"result"'))


def test_every_line_is_json_and_ends_in_the_checksum_of_what_stands_before_it(
    tmp_path: Path,
) -> None:
    swept(CELLS, tmp_path, Scripted(workers=1, repeats=0.5))
    lines = [*lines_of(tmp_path), *(tmp_path / "plan.jsonl").read_bytes().splitlines(keepends=True)]
    for line in lines:
        body, said = re.fullmatch(rb'(.*), "crc32": "([0-9a-f]{8})"\}\n', line).groups()  # type: ignore[union-attr]
        assert int(said, 16) == crc32(body)
        assert json.loads(line)["crc32"] == said.decode()
    kinds = {next(iter(json.loads(line))) for line in lines}
    assert kinds == {"writer", "result", "repeat", "timing", "run"}


def flip_a_digit(lines: list[bytes]) -> None:
    n = first_result(lines)
    lines[n] = re.sub(
        rb'("test_error": \[0\.)(\d)', lambda m: m[1] + b"%d" % (9 - int(m[2])), lines[n]
    )


def swap_records(lines: list[bytes]) -> None:
    one, other = [n for n, line in enumerate(lines) if line.startswith(b'{"result"')][:2]
    (head, _, tail), (head2, _, tail2) = (lines[n].partition(b'"records": ') for n in (one, other))
    lines[one], lines[other] = head + b'"records": ' + tail2, head2 + b'"records": ' + tail


def cut_the_end(lines: list[bytes]) -> None:
    n = first_result(lines)
    lines[n] = lines[n][:-30] + b"\n"


@pytest.mark.parametrize(
    ("damage", "lost"),
    [(flip_a_digit, 1), (swap_records, 2), (cut_the_end, 1)],
    ids=["digit", "swapped", "cut"],
)
def test_a_changed_result_does_not_count_and_is_trained_again(
    damage: Callable[[list[bytes]], None], lost: int, tmp_path: Path
) -> None:
    swept(CELLS, tmp_path)
    was = Store(tmp_path).runs()
    lines = lines_of(tmp_path)
    damage(lines)
    write(tmp_path, lines)
    standing, _, said = store_status(Store(tmp_path))
    assert standing.done == len(CELLS) - lost == len(Store(tmp_path).runs())
    assert [re.match(r"Line \d of 000001\.jsonl is left out: it", one) for one in said].count(
        None
    ) == 0
    assert len(said) == lost
    engine = Scripted()
    assert Notice(said[0], problem=True) in swept(CELLS, tmp_path, engine)
    assert sum(len(job.cells) for job in engine.jobs) == lost
    assert Store(tmp_path).runs() == was


def test_no_flipped_bit_changes_a_result(tmp_path: Path) -> None:
    swept(CELLS, tmp_path, Scripted(workers=1, repeats=0.5))
    log = tmp_path / "log" / "000001.jsonl"
    whole = log.read_bytes()
    runs, repeats = Store(tmp_path).runs(), Store(tmp_path).repeats()
    draw = random.Random(0)
    for _ in range(400):
        at = draw.randrange(len(whole))
        log.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1 :])
        store = Store(tmp_path)
        ledger = store.refresh()
        assert ledger.left_out, at
        assert all(run in runs for run in store.runs())
        assert all(run in repeats for run in store.repeats())
        assert not ledger.failures
        assert set(ledger.costs.values()) <= {(0.5, 1)}


def of(**columns: Any) -> Callable[[dict[str, Any]], None]:
    return lambda result: result["records"].update(columns)


WRONG: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "epochs": (of(epoch=[7, -1]), r"`epoch` must be a whole number, got \[7, -1\]"),
    "descending": (of(epoch=[2, 1]), r"`epoch` must increase from at least 1, got \[2, 1\]"),
    "twice": (of(epoch=[2, 2]), r"`epoch` must increase from at least 1"),
    "from 0": (of(epoch=[0, 2]), r"`epoch` must increase from at least 1"),
    "past the budget": (of(epoch=[1, 3]), "its last epoch must be 2 unless it diverged, got 3"),
    "before the budget": (
        lambda result: result.update(records={k: v[:1] for k, v in result["records"].items()}),
        "its last epoch must be 2 unless it diverged, got 1",
    ),
    "updates": (of(updates=[18, 9]), "`updates` must increase"),
    "no records": (
        lambda result: result.update(records={k: [] for k in result["records"]}),
        "`epoch` must increase",
    ),
    "NaN": (of(test_error=[0.5, float("nan")]), r"`test_error` must be a finite number, got"),
    "infinite": (of(weight_norm=[1.0, 1e999]), "`weight_norm` must be a finite number or null"),
    "no error": (of(test_error=[0.5, None]), "`test_error` must be a finite number, got"),
    "text": (of(lr=["0.1", 0.1]), "`lr` must be a finite number"),
    "a huge number": (of(updates=[9, 10**30]), "`updates` must be a whole number"),
    "a huger number": (of(lr=[9, 10**400]), "it is incomplete or malformed"),
    "a fraction": (of(epoch=[1, 2.0]), "`epoch` must be a whole number"),
    "no truth": (of(diverged=[False, 0]), "`diverged` must be true or false"),
    "no list": (of(lr=0.1), "`lr` must be a finite number"),
    "too long": (of(lr=[0.1, 0.1, 0.1]), "its columns differ in length"),
    "a column": (of(tset_error=[0.5, 0.5]), "it has the wrong columns: unknown tset_error"),
    "no column": (lambda result: result["records"].pop("lr"), "it has the wrong columns: no lr"),
    "diverged before": (
        of(diverged=[True, False]),
        "it has records after the epoch it diverged in",
    ),
    "another's": (
        lambda result: result["config"].update(seed=99),
        f"its configuration belongs to run {replace(CELLS[0], seed=99).identity}",
    ),
    "no configuration": (lambda result: result.pop("config"), r"incomplete .*\(KeyError"),
    "an environment": (
        lambda result: result.update(environment={"device": 3}),
        "its environment must be text, got {'device': 3}",
    ),
    "half an environment": (
        lambda result: result.update(environment={"device": "a"}),
        "it is incomplete or malformed",
    ),
    "no semantics": (lambda result: result.pop("semantics"), "incomplete or malformed"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_line_from_before_checksums_is_left_out_if_it_cannot_be_a_result(
    case: str, tmp_path: Path
) -> None:
    change, why = WRONG[case]
    swept(CELLS[:2], tmp_path)
    lines = [without_checksum(line) for line in lines_of(tmp_path)]
    n = first_result(lines)
    values = json.loads(lines[n])
    gone = values["result"]["run"]
    change(values["result"])
    lines[n] = json.dumps(values).encode() + b"\n"
    write(tmp_path, lines)
    standing, _, [said] = store_status(Store(tmp_path))
    assert standing.done == 1
    assert re.match(rf"Line {n + 1} of 000001\.jsonl is left out: ", said)
    assert re.search(why, said)
    assert done(tmp_path) == [name for name in names(CELLS[:2]) if name != gone]


def test_lines_from_before_checksums_load_and_are_counted(tmp_path: Path, capsys: Output) -> None:
    swept(CELLS, tmp_path)
    was, lines = Store(tmp_path).runs(), lines_of(tmp_path)
    assert Store(tmp_path).refresh().unchecked == 0
    write(tmp_path, [without_checksum(line) for line in lines[:-2]] + lines[-2:])
    store = Store(tmp_path)
    assert store.runs() == was
    assert store.ledger.unchecked == len(lines) - 2
    assert not store.ledger.left_out
    assert main(["status", str(tmp_path)]) == 0
    said = f"{len(lines) - 2} lines are older than checksums: damage in them may go"
    assert said in capsys.readouterr().out


def test_lines_that_end_as_on_windows_load(tmp_path: Path) -> None:
    swept(CELLS, tmp_path)
    was = Store(tmp_path).runs()
    write(tmp_path, [line.replace(b"\n", b"\r\n") for line in lines_of(tmp_path)])
    store = Store(tmp_path)
    assert store.runs() == was
    assert (store.ledger.left_out, store.ledger.unchecked) == ([], 0)


def test_a_committed_store_from_before_checksums_loads() -> None:
    store = Store(COMMITTED)
    lines = sum(len(path.read_bytes().splitlines()) for path in COMMITTED.glob("log/*.jsonl"))
    assert (len(store.runs()), len(store.repeats())) == (566, 18)
    assert store.ledger.unchecked == lines
    assert not store.ledger.left_out


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    run = invented(CELLS[0])
    short, lost = Run(run.config, run.records[:1]), replace(run.last, test_error=float("nan"))
    for bad in (short, Run(run.config, (run.records[0], lost))):
        with (
            Store(tmp_path).writing(workers=1) as writer,
            pytest.raises(ValueError, match="must be"),
        ):
            writer.results([(bad, Cost(run.config.identity, 1.0, 1, 1))])
    assert Store(tmp_path).runs() == []
    assert not Store(tmp_path).refresh().left_out


def asked(folder: Path, capsys: Output) -> list[tuple[str, int, int, str]]:
    """Return how many results status, export and merge find, their exit statuses and words."""
    found = []
    for words in (
        ["status", str(folder)],
        ["export", str(folder), str(folder / "table.csv")],
        ["merge", str(folder / "merged"), str(folder)],
    ):
        status = main(words)
        said = capsys.readouterr().out
        number = re.search(r"(\d+)(?= done| runs| cells? from)", said)
        assert number is not None
        found.append((words[0], status, int(number[0]), said))
    assert len(imported(folder / "table.csv")) == len(Store(folder / "merged").runs())
    shutil.rmtree(folder / "merged")
    return found


def test_status_export_and_merge_agree_on_a_whole_sweep(tmp_path: Path, capsys: Output) -> None:
    swept(CELLS, tmp_path)
    assert {found[1:3] for found in asked(tmp_path, capsys)} == {(0, len(CELLS))}


@pytest.mark.parametrize("checksums", [True, False])
def test_status_export_and_merge_agree_on_damage_and_all_tell_of_it(
    checksums: bool, tmp_path: Path, capsys: Output
) -> None:
    swept(CELLS, tmp_path)
    lines = lines_of(tmp_path) if checksums else [*map(without_checksum, lines_of(tmp_path))]
    n = first_result(lines)
    lines[n] = lines[n].replace(b'"test_error": [0.', b'"test_error": [NaN, 0.')
    write(tmp_path, lines)
    for name, status, number, said in asked(tmp_path, capsys):
        assert (status, number) == (1, len(CELLS) - 1), name
        assert f"Line {n + 1} of 000001.jsonl is left out: " in said


def test_a_torn_line_is_told_by_all(tmp_path: Path, capsys: Output) -> None:
    swept(CELLS, tmp_path)
    write(tmp_path, [*lines_of(tmp_path)[:-2], b'{"result": {"run": "'])
    for name, status, number, said in asked(tmp_path, capsys):
        assert (status, number) == (1, len(CELLS) - 1), name
        assert "The last line of 000001.jsonl is incomplete and is left out." in said


def test_a_line_that_its_writer_ends_while_it_is_read_is_not_torn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept(CELLS, tmp_path)
    lines, is_locked = lines_of(tmp_path), Log.is_locked
    write(tmp_path, [*lines[:-2], lines[-2][:100]])

    def ended(log: Log, name: str) -> bool:
        write(tmp_path, lines)
        return is_locked(log, name)

    monkeypatch.setattr(Log, "is_locked", ended)
    ledger = Store(tmp_path).refresh()
    assert (sorted(ledger.results), ledger.left_out) == (names(CELLS), [])


def test_a_torn_line_that_is_ended_later_is_no_longer_torn(tmp_path: Path) -> None:
    swept(CELLS, tmp_path)
    lines, store = lines_of(tmp_path), Store(tmp_path)
    write(tmp_path, [*lines[:-2], lines[-2][:100]])
    assert store.refresh().left_out == [
        "The last line of 000001.jsonl is incomplete and is left out."
    ]
    assert not store.is_complete()
    write(tmp_path, lines)
    assert store.refresh().left_out == []
    assert (sorted(store.ledger.results), store.is_complete()) == (names(CELLS), True)


def test_a_file_that_is_deleted_while_the_log_is_listed_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept(CELLS, tmp_path)
    log = tmp_path / "log"
    (log / "000002.jsonl").touch()
    with os.scandir(log) as found:
        entries = sorted(found, key=lambda entry: entry.name, reverse=True)
    (log / "000002.jsonl").unlink()
    monkeypatch.setattr(os, "scandir", lambda _: nullcontext(entries))
    assert sorted(Store(tmp_path).refresh().results) == names(CELLS)


def flip_a_digit_of_a_name(lines: list[bytes]) -> None:
    n = first_result(lines)
    lines[n] = re.sub(
        rb'(?<="run": ")(.)', lambda m: b"1" if m[1] == b"0" else b"0", lines[n], count=1
    )


def flip_a_digit_of(kind: bytes) -> Callable[[list[bytes]], None]:
    def flip(lines: list[bytes]) -> None:
        n = next(n for n, line in enumerate(lines) if line.startswith(b'{"' + kind))
        lines[n] = re.sub(rb"(?<=: )\d", lambda m: b"%d" % (9 - int(m[0])), lines[n], count=1)

    return flip


def end_in(end: bytes) -> Callable[[list[bytes]], None]:
    def tear(lines: list[bytes]) -> None:
        lines[-2:] = [end]

    return tear


HARMLESS_ONCE_TRAINED: dict[str, Callable[[list[bytes]], None]] = {
    "a writer's": flip_a_digit_of(b"writer"),
    "a timing": flip_a_digit_of(b"timing"),
    "a repeat": flip_a_digit_of(b"repeat"),
    "a failure": lambda lines: lines.insert(1, b'{"failure": {"run": 3}}\n'),
    "a name": flip_a_digit_of_a_name,
    "torn in a name": end_in(b'{"result": {"run": "1f'),
    "torn in a timing": end_in(b'{"timing": {"run": "1f'),
    "zeros": end_in(bytes(300)),
}


@pytest.mark.parametrize("case", HARMLESS_ONCE_TRAINED)
def test_no_damage_makes_a_sweep_incomplete_whose_cells_are_all_done(
    case: str, tmp_path: Path, capsys: Output
) -> None:
    swept(CELLS, tmp_path, Scripted(workers=1, lanes=1, repeats=0.5))
    lines = lines_of(tmp_path)
    HARMLESS_ONCE_TRAINED[case](lines)
    write(tmp_path, lines)
    swept(CELLS, tmp_path)
    for name, status, number, said in asked(tmp_path, capsys):
        assert (status, number) == (0, len(CELLS)), name
        assert re.search(r"of 000001\.jsonl is (left out|incomplete)", said)
    assert main(["watch", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    ("damage", "status"),
    [(flip_a_digit, 1), (end_in(b'{"result": {"ru'), 1), (flip_a_digit_of(b"timing"), 0)],
    ids=["a result", "torn", "a timing"],
)
def test_without_a_plan_a_damaged_result_is_missing_and_nothing_else(
    damage: Callable[[list[bytes]], None], status: int, tmp_path: Path, capsys: Output
) -> None:
    swept(CELLS, tmp_path, Scripted(workers=1, lanes=1))
    lines = lines_of(tmp_path)
    damage(lines)
    write(tmp_path, lines)
    (tmp_path / "plan.jsonl").unlink()
    for words in (["export", ".", "table.csv"], ["merge", "merged", "."]):
        assert main([str(tmp_path / word) if n else word for n, word in enumerate(words)]) == status
        assert " left out" in capsys.readouterr().out


def test_a_result_that_is_damaged_after_it_was_counted_is_missing(tmp_path: Path) -> None:
    swept(CELLS, tmp_path)
    store = Store(tmp_path)
    results = store.refresh().results
    assert store.is_complete()
    lines = lines_of(tmp_path)
    flip_a_digit(lines)
    write(tmp_path, lines)
    assert len(list(store.read(results))) == len(CELLS) - 1
    assert not store.is_complete()


def test_damage_is_told_but_nothing_is_missing_once_its_cell_is_trained_again(
    tmp_path: Path, capsys: Output
) -> None:
    swept(CELLS, tmp_path, Scripted(workers=1, lanes=1))
    *lines, result, _ = lines_of(tmp_path)
    n = first_result(lines)
    flip_a_digit(lines)
    write(tmp_path, [*lines, result[:-40]])
    assert {found[1:3] for found in asked(tmp_path, capsys)} == {(1, len(CELLS) - 2)}
    swept(CELLS, tmp_path)
    for name, status, number, said in asked(tmp_path, capsys):
        assert (status, number) == (0, len(CELLS)), name
        assert f"Line {n + 1} of 000001.jsonl is left out: its checksum does not match" in said
        assert (
            "The last line of 000001.jsonl is incomplete and is left out. The cell has another"
            in said
        )


def test_status_export_and_merge_agree_after_a_change_of_semantics(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept(CELLS, tmp_path)
    monkeypatch.setattr(definition, "SEMANTICS", 2)
    anew = [RunConfig.from_dict(one.as_dict()) for one in CELLS]  # whose names have moved
    left_out = f"{len(CELLS)} results left out: these cells were trained by a version of weight"
    for words in (["status", "."], ["export", ".", "table.csv"], ["merge", "merged", "."]):
        assert main([str(tmp_path / word) if n else word for n, word in enumerate(words)]) == 1
        said = capsys.readouterr().out
        assert re.search(r"\b0 (done|runs|cells from)", said)
        assert left_out in said
    swept(anew[:2], tmp_path)  # the others are no longer planned
    assert {found[1:3] for found in asked(tmp_path, capsys)} == {(0, 2)}
    swept(anew, tmp_path)
    assert {found[1:3] for found in asked(tmp_path, capsys)} == {(0, len(CELLS))}


def of_a_newer_version(result: dict[str, Any], part: str) -> None:
    """Change a result as a newer version of the same semantics might write it."""
    if part == "records":
        columns = result["records"]
        last = columns.pop("diverged")
        columns.update(calibration=last, diverged=last)
    else:
        result.setdefault(part, {})["calibration"] = "none"


@pytest.mark.parametrize("part", ["records", "config", "environment"])
def test_a_result_that_this_version_cannot_read_is_done_for_nobody(
    part: str, tmp_path: Path, capsys: Output
) -> None:
    folder, whole = tmp_path / "sweep", tmp_path / "whole"
    swept(CELLS, folder)
    swept(CELLS, whole)
    lines = lines_of(folder)
    n = [n for n, line in enumerate(lines) if line.startswith(b'{"result"')][-1]
    values = json.loads(lines[n])
    del values["crc32"]
    of_a_newer_version(values["result"], part)
    lines[n] = as_line(values)
    write(folder, lines)
    for name, status, number, said in asked(folder, capsys):
        assert (status, number) == (1, len(CELLS) - 1), name
        assert f"Line {n + 1} of 000001.jsonl is left out: " in said
    assert main(["merge", str(whole), str(folder)]) == 0
    assert capsys.readouterr().out.startswith("Copied 0 cells")
    engine = Scripted()
    swept(CELLS, folder, engine)
    assert sum(len(job.cells) for job in engine.jobs) == 1
    assert {found[1:3] for found in asked(folder, capsys)} == {(0, len(CELLS))}


def test_what_merging_makes_up_for_is_not_missing(tmp_path: Path, capsys: Output) -> None:
    whole, damaged = tmp_path / "whole", tmp_path / "damaged"
    swept(CELLS, whole)
    swept(CELLS, damaged)
    lines = lines_of(damaged)
    flip_a_digit(lines)
    write(damaged, lines)
    assert main(["merge", str(whole), str(damaged)]) == 0
    capsys.readouterr()
    assert main(["merge", str(damaged), str(whole)]) == 0
    taken, said = capsys.readouterr().out.splitlines()
    assert taken == f"Copied 1 cell from {whole}."
    assert said.startswith(f"{damaged}: Line ")
    assert said.endswith("The cell has another result, which counts.")


def test_a_result_that_is_damaged_while_folders_are_merged_is_left_out(
    tmp_path: Path,
) -> None:
    one, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    swept(CELLS, one.folder)
    swept(CELLS, other.folder)
    one.refresh()
    lines = lines_of(one.folder)
    flip_a_digit(lines)
    write(one.folder, lines)
    merged = merge(one, other)
    assert (merged.taken, merged.conflicts) == (1, [])
    assert "is left out: its checksum does not match" in one.ledger.left_out[0]
    assert done(one.folder) == names(CELLS)


def test_of_much_damage_a_part_is_named_and_the_rest_counted(
    tmp_path: Path, capsys: Output
) -> None:
    swept(CELLS, tmp_path)
    (tmp_path / "log" / "000002.jsonl").write_text("broken\n" * 1000)
    assert main(["status", str(tmp_path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert len([line for line in said if line.startswith("Line ")]) == 20
    assert "980 more lines are left out." in said


def differing(job: Job) -> list[Message]:
    """Train cells to other errors than elsewhere."""
    told = []
    for run in map(invented, job.cells):
        changed = tuple(replace(record, test_error=0.25) for record in run.records)
        told.append((Run(run.config, changed), Cost(run.config.identity, 0.5, 1, 1)))
    return [Finished(tuple(told)), Ended()]


def test_results_that_differ_are_counted_and_named_when_folders_are_merged(
    tmp_path: Path, capsys: Output
) -> None:
    one, other, both = (tmp_path / name for name in ("one", "other", "both"))
    swept(CELLS[:3], one)
    swept(CELLS[1:], other, Scripted(differing))
    assert main(["merge", str(both), str(one), str(other)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == [
        f"Copied 3 cells from {one}.",
        f"Copied 1 cell from {other}.",
        f"2 cells with different results in {other}; those of {both} are kept:",
    ]
    kept = {run.config.identity: run.last.test_error for run in Store(one).runs()}
    assert said[3:] == [
        f"  {name}: test error {kept[name]:.4f} in {both}, 0.2500 in {other}"
        for name in names(CELLS[1:3])
    ]
    assert [run for run in Store(both).runs() if run.config in CELLS[:3]] == Store(one).runs()


@pytest.mark.parametrize(
    ("kinds", "status", "said"),
    [(("repeat",), 0, "1 cell with different repeats"), (("repeat", "result"), 1, "1 cell with")],
)
def test_repeats_that_differ_are_named_unless_the_results_do_and_nothing_is_missing(
    kinds: tuple[str, ...], status: int, said: str, tmp_path: Path, capsys: Output
) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        swept(CELLS, folder, Scripted(workers=1, repeats=0.3))
    log = other / "log" / "000001.jsonl"
    lines = log.read_bytes().splitlines(keepends=True)
    repeated = min(Store(other).refresh().repeated)
    for kind in kinds:
        start = f'{{"{kind}": {{"run": "{repeated}"'.encode()
        n = next(n for n, line in enumerate(lines) if line.startswith(start))
        lines[n] = without_checksum(lines[n]).replace(b'"decay": [0.1,', b'"decay": [0.2,')
    log.write_bytes(b"".join(lines))
    assert main(["merge", str(one), str(other)]) == status
    found = capsys.readouterr().out
    assert said in found
    assert found.count(" with different ") == found.count(f"  {repeated}: ") == 1


def test_where_a_cell_was_trained_makes_no_conflict(tmp_path: Path) -> None:
    run = invented(CELLS[0])
    for name in ("one", "other"):
        place = Environment(
            device=name, torch="2", python="3", version="0", commit="unknown", source="0"
        )
        with Store(tmp_path / name).writing(workers=1) as writer:
            writer.results([(replace(run, environment=place), Cost(CELL, 1.0, 2, 1))])
    assert not merge(Store(tmp_path / "one"), Store(tmp_path / "other")).conflicts


@pytest.mark.parametrize("planless", ["source", "target", "both"])
def test_of_a_folder_without_a_plan_what_is_done_is_merged_and_planned(
    planless: str, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    swept(CELLS[:2], source)
    swept(CELLS[2:], target)
    for folder in (source, target):
        if planless in (folder.name, "both"):
            (folder / "plan.jsonl").unlink()
    assert merge(Store(target), Store(source)).taken == 2
    assert done(target) == names(CELLS)
    standing, _, left_out = store_status(Store(target))
    assert (standing.planned, standing.done, left_out) == (len(CELLS), len(CELLS), [])


def test_an_old_store_of_a_log_alone_is_merged_with_checksums(
    tmp_path: Path, capsys: Output
) -> None:
    assert main(["merge", str(tmp_path), str(OLD)]) == 0
    assert capsys.readouterr().out == f"Copied 3 cells from {OLD}.\n"
    store = Store(tmp_path)
    assert store.runs() == Store(OLD).runs()
    assert store.ledger.unchecked == 0
    assert main(["status", str(tmp_path)]) == 0
    assert "3 planned · 0 running · 3 done" in capsys.readouterr().out


USELESS = {
    "workers": ('{"writer": {"workers": 1e400}}', "`workers` must be a whole number, got inf"),
    "some workers": ('{"writer": {"workers": "two"}}', "`workers` must be a whole number"),
    "fewer than no workers": ('{"writer": {"workers": -1}}', "`workers` must be at least 0"),
    "no workers": ('{"writer": {}}', "incomplete or malformed"),
    "a list": ('{"writer": []}', "incomplete or malformed"),
    "a reason": (
        f'{{"failure": {{"run": "{CELL}", "reason": {{"a": 1}}}}}}',
        "`reason` must be te",
    ),
    "no reason": (f'{{"failure": {{"run": "{CELL}"}}}}', "incomplete or malformed"),
    "a trace": (
        f'{{"failure": {{"run": "{CELL}", "reason": "", "trace": []}}}}',
        "`trace` must be text",
    ),
    "a name": ('{"failure": {"run": ["a"], "reason": ""}}', "`run` must be text"),
    "seconds": (
        f'{{"timing": {{"run": "{CELL}", "seconds": NaN, "epochs": 1}}}}',
        "`seconds` must be finite and at least 0, got nan",
    ),
    "epochs": (
        f'{{"timing": {{"run": "{CELL}", "seconds": 1, "epochs": 1e400}}}}',
        "`epochs` must be a whole number, got inf",
    ),
    "a kind": (
        f'{{"resulu": {{"run": "{CELL}"}}}}',
        "this version does not know lines of kind 'resulu'",
    ),
    "two kinds": ('{"writer": {"workers": 1}, "also": {}}', "it must have one key, got 'wri"),
    "depth": ("[" * 100_000, "it is not JSON"),
    "digits": ('{"writer": {"workers": ' + "9" * 5000 + "}}", "it is not JSON"),
}


@pytest.mark.parametrize("case", USELESS)
def test_a_line_of_no_use_is_left_out_and_said(case: str, tmp_path: Path) -> None:
    text, why = USELESS[case]
    swept(CELLS, tmp_path)
    (tmp_path / "log" / "000002.jsonl").write_text(text + "\n")
    standing, failures, [said] = store_status(Store(tmp_path))
    assert (standing.done, failures) == (len(CELLS), [])
    assert said.startswith("Line 1 of 000002.jsonl is left out: ")
    assert why in said
    assert Notice(said, problem=True) in swept(CELLS, tmp_path)


def planned(**changes: Any) -> str:
    values = {k: v for k, v in (CELLS[0].as_dict() | changes).items() if v != "gone"}
    return json.dumps({"run": CELL, "config": values})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (planned(epochs="gone"), "'epochs'"),
        (planned(epochs={"a": 1}), "`epochs` must be a whole number"),
        (planned(task=["toy"]), "`task` must be a name"),
        (planned(lr=1e400), "`lr` must be finite"),
        (f'{{"run": "{CELL}"}}', "has no 'config'"),
        (
            f'{{"run": ["{CELL}"], "config": {json.dumps(CELLS[0].as_dict())}}}',
            "`run` must be text",
        ),
        (f'{{"run": "{CELL}", "config": 3}}', "cannot be used"),
        ('{"run": "", "config": {}, "crc32": "00000000"}', "its checksum does not match"),
        ("[]", "it is not a JSON object"),
    ],
)
def test_an_incomplete_line_of_a_plan_is_named(
    line: str, why: str, tmp_path: Path, capsys: Output
) -> None:
    swept(CELLS, tmp_path)
    with (tmp_path / "plan.jsonl").open("a") as plan:
        plan.write(line + "\n")
    for words in (["status", str(tmp_path)], ["retry", str(tmp_path)]):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert f"must have one cell per line, but line {len(CELLS) + 1} " in said
        assert why in said
        assert said.count("\n") == 1
