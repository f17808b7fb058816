"""What a run is: checked, serializable, and one identity for all that changes its result."""

import json
from dataclasses import asdict, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.landscapes import ended
from tests.toys import config
from weightdecay.records import Environment, Progress, Run, RunConfig, Spec, packed, unpacked
from weightdecay.records import config as definition
from weightdecay.records.codec import as_line, read
from weightdecay.records.columnar import as_result

OTHER: dict[str, Any] = {
    "task": "mnist1d",
    "model": "mlp,width=4",
    "algorithm": "sgdw",
    "lr": 0.03,
    "normalized_decay": 0.2,
    "schedule": "constant",
    "epochs": 4,
    "batch": 10,
    "data": 100,
    "validation": "test",
    "seed": 1,
    "precision": "bfloat16",
    "evaluate_every": 0,
    "keep_missed": True,
}


def test_the_identity_is_the_hash_of_all_that_changes_a_result() -> None:
    others = [config(**{name: value}).identity for name, value in OTHER.items()]
    others += [config(weight_decay=0.1).identity, config(algorithm="sgd", l2=0.1).identity]
    assert len({config().identity, *others}) == len(others) + 1
    assert {field.name for field in fields(RunConfig)} == {*OTHER, "weight_decay", "l2"}


def test_the_identity_does_not_move_by_itself() -> None:
    """It names folders that people keep: a change here needs another SEMANTICS."""
    assert config().identity == "c7ff8473f24a09e3d092"


def test_results_from_before_a_tasks_data_changed_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lines() -> list[bytes]:
        cells = [config(task=task, model="mlp", seed=3) for task in ("mnist1d", "cifar10")]
        return [as_line({"result": as_result(ended(cell))}) for cell in cells]

    now = lines()
    monkeypatch.setattr(definition, "_CHANGED", {})
    before = lines()
    monkeypatch.undo()
    # The first two are read in full, and the others by a glance.
    assert [read(line)[0] for line in now] == ["result", "result"]
    assert [read(line)[0] for line in now] == ["result", "result"]
    assert [read(line)[0] for line in before] == ["outdated", "result"]
    assert now[0] != before[0]
    assert now[1] == before[1]


def test_what_is_written_otherwise_and_means_the_same_has_one_identity() -> None:
    one = config(model="mlp,width=8,depth=1", lr=1)
    assert one.identity == config(model="mlp,depth=1,width=8", lr=1.0).identity


def test_a_configuration_survives_json() -> None:
    one = config(schedule="drops,at=1.5/2,drop=0.1", lr=0.1 + 0.2, validation="test")
    assert RunConfig.from_dict(json.loads(json.dumps(one.as_dict()))) == one
    with pytest.raises(ValueError, match=r"^Unknown RunConfig fields: momentum\.$"):
        RunConfig.from_dict({**one.as_dict(), "momentum": 0.9})


words = st.text("abcxyz", min_size=1, max_size=5)
values = st.one_of(
    st.booleans(),
    st.integers(-9, 99),
    st.floats(0, 1e9),
    words.filter(lambda word: word not in ("true", "false")),
    st.lists(st.floats(0, 9), min_size=2, max_size=3).map(tuple),
)


@given(words, st.dictionaries(words, values, max_size=3))
def test_a_spec_says_what_it_was_read_from(name: str, options: dict[str, Any]) -> None:
    spec = Spec(name, options)
    assert Spec.parse("model", str(spec)) == spec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lr": 0}, "`lr` must be finite and above 0, got 0"),
        ({"lr": float("nan")}, "`lr` must be finite and above 0, got nan"),
        ({"epochs": 1.5}, "`epochs` must be a whole number, got 1.5"),
        ({"batch": 0}, "`batch` must be at least 1, got 0"),
        ({"data": 29}, "`data` must be at least 30, got 29"),
        ({"validation": "half"}, "`validation` must be one of 'test', got 'half'"),
        ({"validation": 0}, "`validation` must be at least 1, got 0"),
        ({"seed": -1}, "`seed` must be at least 0, got -1"),
        ({"seed": 2**32}, "`seed` must be below 2^32"),
        ({"precision": "half"}, "`precision` must be one of 'float32', 'bfloat16', got 'half'"),
        ({"schedule": "sine"}, "`schedule` must be one of 'constant', 'cosine'"),
        ({"schedule": "restart,first=1"}, "got 'restart'. Did you mean `restarts`?"),
        ({"schedule": "cosine,hig=2"}, "Unknown option `hig` for cosine. Its options are low, war"),
        (
            {"schedule": "drops,at=1,dorp=2"},
            "Unknown option `dorp` for drops. Did you mean `drop`?",
        ),
        ({"schedule": "restarts"}, "restarts needs the option `first`. Its options are first, fa"),
        ({"schedule": "cosine,low"}, "a name with options as in 'restarts,first=10,factor=2'"),
        ({"model": ""}, "`model` must be a name such as 'shakeshake26,width=32', got ''"),
        ({"model": "mlp,width=1,width=2"}, "`model` must have each option only once"),
        ({"algorithm": "lion"}, "`algorithm` must be one of sgdw, adamw, sgd, adam, or a class"),
        ({"algorithm": "Adamw"}, "got 'Adamw'. Did you mean `adamw`?"),
        ({"l2": 0.1}, "The decay of adamw must be stated once, as `weight_decay` or `norm"),
        ({"algorithm": "a:B", "l2": 0.1, "weight_decay": 0.1}, "`l2`, got `weight_decay`, `l2`"),
        ({"algorithm": "sgd"}, "The decay of sgd must be stated once, as `l2`, got `normalized"),
        ({"weight_decay": 0.1, "normalized_decay": 0.1}, "stated once"),
        ({"weight_decay": 1.0}, "`weight_decay` must be in"),
    ],
)
def test_bad_values_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        config(**changes)
    assert message in str(caught.value)


def test_an_unknown_field_is_named_with_the_one_that_was_meant() -> None:
    values = {**config().as_dict(), "learning_rate": 1.0, "speed": 2}
    with pytest.raises(
        ValueError, match=r"^Unknown RunConfig fields: learning_rate, speed\. Did you mean `lr`"
    ):
        RunConfig.from_dict(values)


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        config().lr = 1.0  # type: ignore[misc]


def test_the_time_left_follows_from_the_speed_of_all_lanes() -> None:
    made: dict[str, Any] = {
        "update": 25,
        "updates": 100,
        "epoch": 1,
        "epochs": 4,
        "loss": 1.0,
        "error": 0.5,
    }
    progress = Progress(**made, multiplier=1.0, speed=30.0, lanes=2)
    assert progress.seconds_left == 5.0
    assert asdict(progress)["lanes"] == 2


@given(st.lists(st.booleans(), max_size=70))
def test_packed_bits_come_back(bits: list[bool]) -> None:
    assert unpacked(packed(bits)) == bits


def test_bits_that_are_not_as_many_as_they_say_are_refused() -> None:
    count, _, body = packed([True, False, True]).partition(":")
    assert count == "3"
    with pytest.raises(ValueError, match="must have the stated length 4, got 3"):
        unpacked(f"4:{body}")


def test_a_run_taken_up_elsewhere_has_both_environments() -> None:
    names = [field.name for field in fields(Environment)]
    here, there = (Environment(**dict.fromkeys(names, "same") | {"torch": v}) for v in ("1", "2"))
    both = here.then(there)
    assert both == Environment(**dict.fromkeys(names, "same") | {"torch": "1 + 2"})
    assert both.then(here) == both


def test_a_run_is_shown_in_one_line_however_many_records_it_has() -> None:
    run = ended(RunConfig(**OTHER), test_error=0.25)
    what = "mnist1d, mlp,width=4, sgdw, lr=0.03, normalized_decay=0.2, seed=1"
    name = RunConfig(**OTHER).identity
    assert repr(run) == f"<Run {name}: {what}, epoch 4, test error 0.25>"
    lost = replace(run.last, diverged=True, test_error=None)
    assert repr(Run(run.config, (lost,))) == f"<Run {name}: {what}, diverged in epoch 4>"
    unknown = replace(run.last, metric="bits", test_error=None)
    assert repr(Run(run.config, (unknown,))).endswith("epoch 4, test bits unknown>")
    assert repr(Run(run.config, ())).endswith("no records>")
