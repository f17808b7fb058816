"""What is made by code is the same everywhere: MNIST-1D as its package makes it, and the text."""

import hashlib

import numpy as np
import pytest
import torch

from weightdecay.tasks import Examples, load, text

# From mnist1d 0.0.2.post1, make_dataset() with its defaults.
TRAIN_CLASSES = [2, 6, 4, 5, 6, 6, 6, 0, 3, 1, 6, 9]
VALUES = [
    (0, 0, [-0.33200567, -0.47191037, -0.77869708, -1.00974083]),
    (1234, 20, [-0.68194862, -2.69377636, -2.20341695, -0.24009985]),
]


@pytest.mark.parametrize(("row", "column", "expected"), VALUES)
def test_mnist1d_is_the_packages(row: int, column: int, expected: list[float]) -> None:
    inputs = load("mnist1d").train.inputs
    np.testing.assert_allclose(inputs[row, column : column + 4].numpy(), expected, atol=1e-6)


def test_all_training_examples_of_mnist1d_are_the_packages() -> None:
    """Sums that weigh the places of a sequence, or the sequences, each differently."""
    train = load("mnist1d").train
    values = train.inputs.double().numpy()
    assert (values * np.arange(40)).sum() == pytest.approx(19388.11334187731, abs=0.01)
    rows = np.arange(1, 4001)[:, None]
    assert (values * rows).sum() == pytest.approx(-431852.00245759625, abs=0.1)
    assert np.abs(values).sum() == pytest.approx(118338.29510719894, abs=0.01)
    assert train.targets[:12].tolist() == TRAIN_CLASSES


def test_mnist1d_has_4000_sequences_to_train_on_and_20000_to_test() -> None:
    task = load("mnist1d")
    assert task.train.inputs.shape == (4000, 40)
    assert task.test.inputs.shape == (20_000, 40)
    for part in (task.train, task.test):
        assert part.inputs.dtype == torch.float32
        assert part.targets.dtype == torch.int64
    assert task.test.targets.bincount().tolist() == [2000] * 10


def test_sequences_to_test_mnist1d_on_are_new_and_like_those_to_train_on() -> None:
    """Per class, and per place of a sequence, the means agree within noise."""
    train, test = load("mnist1d").train, load("mnist1d").test
    assert not {*map(bytes, train.inputs.numpy())} & {*map(bytes, test.inputs.numpy())}
    for one in range(10):
        few, many = (part.inputs[part.targets == one] for part in (train, test))
        noise = few.std(0) / len(few) ** 0.5
        assert ((few.mean(0) - many.mean(0)).abs() < 5 * noise).all()
        assert (few.std() - many.std()).abs() < 0.05


def test_what_is_made_is_made_once() -> None:
    assert load("mnist1d").train.inputs is load("mnist1d").train.inputs


def read(examples: Examples) -> str:
    return "".join(text.ALPHABET[token] for token in examples.inputs.flatten().tolist())


def test_the_text_has_its_length_and_checksum() -> None:
    task = load("text")
    train, test = read(task.train), read(task.test)
    assert (len(train), len(test)) == (320_000, 32_000)
    assert hashlib.sha1(train.encode()).hexdigest() == "833e5420407aeb89b94f6e5fc34768feccd6c389"
    assert hashlib.sha1(test.encode()).hexdigest() == "ff152e0f104aca7fbb8da4101a098cbfa6270f66"


def test_a_target_is_the_next_character() -> None:
    train = load("text").train
    assert train.inputs.shape == train.targets.shape == (5000, 64)
    assert train.inputs.dtype == torch.uint8
    assert torch.equal(train.inputs.long().flatten()[1:], train.targets.flatten()[:-1])


def test_every_letter_of_the_alphabet_is_in_the_text() -> None:
    assert set(read(load("text").train)) == set(text.ALPHABET)


def test_no_story_of_the_test_was_trained_on() -> None:
    train, test = (set(read(part).splitlines()) for part in (load("text").train, load("text").test))
    stories = {line for line in test if " gave " in line}
    assert len(stories) > 100
    assert not stories & train


def test_the_sums_are_right() -> None:
    """The names of the numbers are made here in another way."""
    ones = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    teens = ["ten", "eleven", "twelve", *(f"{stem}teen" for stem in ("thir", "four", "fif", "six"))]
    teens += ["seventeen", "eighteen", "nineteen"]
    tens = [f"{stem}ty" for stem in ("twen", "thir", "for", "fif", "six", "seven", "eigh", "nine")]
    names = [*ones, *teens, *(f"{ten} {one}".strip() for ten in tens for one in ["", *ones])]
    value = {name: number for number, name in enumerate(names, start=1)}
    sums = [line for line in text.write(3, 20_000).splitlines()[:-1] if " make " in line]
    assert len(sums) > 20
    for line in sums:
        parts, total = line.rstrip(".").split(" make ")
        first, second = parts.split(" and ")
        assert value[first] + value[second] == value[total]
