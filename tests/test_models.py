"""The models: what they compute, what they draw, and from where."""

import copy
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.functional import cross_entropy

from weightdecay.tasks.models import MLP, ConvNet, Noisy, ShakeShake26, Transformer
from weightdecay.tasks.models.initial import start_

Build = Callable[[torch.Generator | None], nn.Module]
DEVICE = torch.get_default_device()
MODELS: dict[str, Build] = {
    "shakeshake": lambda generator: ShakeShake26(4, generator=generator),
    "mlp": lambda generator: MLP(3 * 8 * 8, 10, width=16, generator=generator),
    "convnet": lambda generator: ConvNet(10, width=4, generator=generator),
    "transformer": lambda generator: Transformer(
        10, length=8, width=16, depth=2, heads=2, generator=generator
    ),
}
NOISY = ("shakeshake", "transformer")
QUIET = ("mlp", "convnet")
every_model = pytest.mark.parametrize("name", MODELS)
every_noisy_model = pytest.mark.parametrize("name", NOISY)


def from_seed(seed: int) -> torch.Generator:
    return torch.Generator("cpu").manual_seed(seed)


def images(count: int = 3, size: int = 8, channels: int = 3) -> Tensor:
    # In double precision, which no device rounds further by itself.
    return torch.randn(count, channels, size, size, dtype=torch.float64)


def noisy(name: str, seed: int = 1) -> tuple[Noisy, Tensor]:
    """A model with its own noise, and inputs for it."""
    model = MODELS[name](from_seed(seed)).double()
    assert isinstance(model, Noisy)
    model.generator = torch.Generator(DEVICE).manual_seed(seed)
    return model, images() if name == "shakeshake" else torch.randint(10, (3, 8))


def tensors(model: nn.Module) -> list[Tensor]:
    return list(model.state_dict().values())


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


@every_model
def test_a_seed_gives_its_weights_and_leaves_torchs_randomness_alone(name: str) -> None:
    before = torch.get_rng_state()
    first = tensors(MODELS[name](from_seed(3)))
    assert torch.equal(torch.get_rng_state(), before)
    assert same(first, tensors(MODELS[name](from_seed(3))))
    assert not same(first, tensors(MODELS[name](from_seed(4))))


@every_model
def test_without_a_generator_torchs_own_gives_the_weights(name: str) -> None:
    torch.manual_seed(3)
    assert same(tensors(MODELS[name](None)), tensors(MODELS[name](from_seed(3))))


def test_first_weights_have_their_spread() -> None:
    layers = [
        *ShakeShake26(32, classes=100, generator=from_seed(0)).modules(),
        *Transformer(100, generator=from_seed(0)).modules(),
    ]
    checked = set()
    for layer in layers:
        match layer:
            case nn.Conv2d():
                spread = math.sqrt(2 / (layer.kernel_size[0] ** 2 * layer.out_channels))
            case nn.Linear():
                spread = 1 / math.sqrt(3 * layer.in_features)
                assert layer.weight.abs().max() <= 1 / math.sqrt(layer.in_features)
                assert not layer.bias.any()
            case nn.Embedding():
                spread = 1 / math.sqrt(layer.embedding_dim)
            case nn.BatchNorm2d() | nn.LayerNorm():
                assert (layer.weight == 1).all()
                assert not layer.bias.any()
                continue
            case _:
                continue
        weight = layer.weight.detach()
        error = 5 * spread / math.sqrt(weight.numel())  # five standard errors
        assert abs(weight.mean()) < error
        assert abs(weight.std() - spread) < error
        checked.add(type(layer))
    assert checked == {nn.Conv2d, nn.Linear, nn.Embedding}


@every_noisy_model
def test_a_generator_gives_the_noise(name: str) -> None:
    model, inputs = noisy(name)
    assert isinstance(model.generator, torch.Generator)
    before = torch.get_rng_state()
    first, second = model(inputs), model(inputs)
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(first, second)
    model.generator.manual_seed(1)
    assert torch.equal(model(inputs), first)


@every_noisy_model
def test_a_copy_draws_what_the_model_draws(name: str) -> None:
    model, inputs = noisy(name)
    model(inputs)
    twin = copy.deepcopy(model)
    assert torch.equal(twin(inputs), model(inputs))
    assert not any("generator" in key for key in model.state_dict())


@every_noisy_model
def test_out_of_training_nothing_is_drawn(name: str) -> None:
    model, inputs = noisy(name)
    assert isinstance(model.generator, torch.Generator)
    before = model.generator.get_state()
    first = model.eval()(inputs)
    assert torch.equal(model(inputs), first)
    assert torch.equal(model.generator.get_state(), before)


@every_noisy_model
def test_noise_must_come_from_where_the_inputs_are(name: str) -> None:
    model, inputs = noisy(name)
    with pytest.raises(ValueError, match=r"inputs' device, meta, got .* torch.Generator\('meta'\)"):
        model(inputs.to("meta"))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*Function'> should not be instantiated")  # Dynamo does it
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's compiler about itself
@every_noisy_model
def test_all_but_the_drawing_compiles_whole(name: str) -> None:
    model, inputs = noisy(name)
    noise = model.draw(inputs)
    expected = gradients(model, model.compute(inputs, noise))
    compiled = torch.compile(model.compute, fullgraph=True, backend="aot_eager")
    for got, wanted in zip(gradients(model, compiled(inputs, noise)), expected, strict=True):
        torch.testing.assert_close(got, wanted)


def gradients(model: nn.Module, outputs: Tensor) -> tuple[Tensor, ...]:
    """The outputs, and the gradients of their weighted sum."""
    weights = torch.linspace(-1, 1, outputs.numel(), dtype=outputs.dtype).view_as(outputs)
    return outputs, *torch.autograd.grad((weights * outputs).sum(), list(model.parameters()))


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda: ShakeShake26(64), 11_653_978),
        (lambda: ShakeShake26(96), 26_192_922),
        (lambda: MLP(192, 10, width=16, depth=2), 192 * 16 + 32 + 16 * 16 + 32 + 16 * 10 + 10),
        (lambda: ConvNet(10, width=1), 9 * (3 + 1 + 2 + 4 + 8 + 16) + 28 + 4 * 10 + 10),
    ],
)
def test_a_model_has_its_parameters(build: Callable[[], nn.Module], count: int) -> None:
    assert sum(param.numel() for param in build().parameters()) == count


def test_the_stem_has_no_relu() -> None:
    assert ShakeShake26(4).double().stem(images()).min() < 0


@pytest.mark.parametrize("shake", ["image", "batch"])
@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("backward", [True, False])
def test_branches_mix_by_alpha_and_learn_by_beta(shake: str, forward: bool, backward: bool) -> None:
    model = ShakeShake26(4, shake=shake, forward=forward, backward=backward).double()
    inputs = images()
    model.generator = torch.Generator(DEVICE).manual_seed(7)
    again = torch.Generator(DEVICE).manual_seed(7)
    drawn = torch.rand(12, 2, 3 if shake == "image" else 1, 1, 1, 1, generator=again)
    x = model.stem(inputs)
    blocks: Any = model.blocks
    for block, pair in zip(blocks, drawn.double(), strict=True):
        alpha = pair[0] if forward else 0.5
        beta = pair[1] if backward else alpha
        active = x.relu()
        one, other = block.one(active), block.other(active)
        learnt = beta * one + (1 - beta) * other
        mixed = alpha * one + (1 - alpha) * other
        skip = block.skip(active) if block.skip else x
        x = skip + learnt + (mixed - learnt).detach()
    expected = gradients(model, model.head(x.relu().mean((2, 3))))
    for got, wanted in zip(gradients(model, model(inputs)), expected, strict=True):
        torch.testing.assert_close(got, wanted)


def test_out_of_training_branches_count_a_half() -> None:
    model = ShakeShake26(4).double().eval()
    inputs = images()
    x = model.stem(inputs)
    blocks: Any = model.blocks
    for block in blocks:
        active = x.relu()
        x = (block.skip(active) if block.skip else x) + (
            block.one(active) + block.other(active)
        ) / 2
    torch.testing.assert_close(model(inputs), model.head(x.relu().mean((2, 3))))


def test_equal_images_differ_by_their_noise_alone() -> None:
    inputs = images(1).expand(2, -1, -1, -1)
    one, other = ShakeShake26(4, shake="batch").double()(inputs)
    torch.testing.assert_close(one, other)
    one, other = ShakeShake26(4, shake="image").double()(inputs)
    assert not torch.allclose(one, other)


@pytest.mark.parametrize(("block", "stride"), [(0, 1), (4, 2), (8, 2)])
def test_a_skip_joins_the_image_and_the_image_shifted_right_and_down(
    block: int, stride: int
) -> None:
    skip: Any = ShakeShake26(4).double().eval().blocks[block].skip
    size = 6
    active = images(1, size, skip.here.in_channels).relu()
    here, shifted = (conv.weight[:, :, 0, 0] for conv in (skip.here, skip.shifted))
    expected = active.new_zeros(skip.norm.num_features, size // stride, size // stride)
    for row in range(0, size, stride):
        for column in range(0, size, stride):
            halves = [here @ active[0, :, row, column], torch.zeros_like(shifted[:, 0])]
            if row > 0 and column > 0:
                halves[1] = shifted @ active[0, :, row - 1, column - 1]
            expected[:, row // stride, column // stride] = torch.cat(halves)
    torch.testing.assert_close(skip(active)[0], expected / math.sqrt(1 + skip.norm.eps))


def test_a_width_that_does_not_change_needs_no_skip() -> None:
    skips = [number for number, block in enumerate(ShakeShake26(16).blocks) if block.skip]
    assert skips == [4, 8]


def test_shake_shake_takes_channels_last() -> None:
    model, inputs = noisy("shakeshake")
    noise = model.draw(inputs)
    expected = model.compute(inputs, noise)
    last: Any = {"memory_format": torch.channels_last}
    torch.testing.assert_close(model.to(**last).compute(inputs.to(**last), noise), expected)


@every_noisy_model
def test_sixteen_bits_are_close(name: str) -> None:
    model, inputs = noisy(name)
    noise = model.draw(inputs)
    expected = model.compute(inputs, noise)
    with torch.autocast(DEVICE.type, torch.bfloat16):
        inputs = inputs.float() if inputs.is_floating_point() else inputs
        rounded = model.float().compute(inputs, noise)
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.double(), expected, rtol=0.1, atol=0.1)
    assert all(grad.isfinite().all() for grad in gradients(model, rounded))


@pytest.mark.parametrize("name", QUIET)
def test_lanes_side_by_side_equal_lanes_alone(name: str) -> None:
    """Three updates by gradient descent, with the norms' statistics."""
    alone = [MODELS[name](from_seed(seed)).double() for seed in range(3)]
    params, buffers = stack_module_state(alone)
    shell = copy.deepcopy(alone[0])

    def lane(params: Any, buffers: Any, inputs: Tensor) -> Tensor:
        return cross_entropy(functional_call(shell, (params, buffers), inputs), targets)

    targets = torch.randint(10, (8,))
    for _ in range(3):
        inputs = torch.stack([images(8) for _ in alone])
        losses = vmap(lane)(params, buffers, inputs)
        descend(list(params.values()), losses.sum())
        for model, batch in zip(alone, inputs, strict=True):
            descend(list(model.parameters()), cross_entropy(model(batch), targets))
    together = {**params, **buffers}
    for number, model in enumerate(alone):
        assert not hasattr(model, "generator")
        for key, tensor in model.state_dict().items():
            torch.testing.assert_close(together[key][number], tensor)
    assert all((buffers[key] == 3).all() for key in buffers if key.endswith("tracked"))


def descend(params: list[Tensor], loss: Tensor) -> None:
    with torch.no_grad():
        for param, grad in zip(params, torch.autograd.grad(loss, params), strict=True):
            param.sub_(0.1 * grad)


@pytest.mark.parametrize(("size", "channels"), [(32, 3), (28, 1)])
def test_a_convolutional_network_takes_both_kinds_of_images(size: int, channels: int) -> None:
    model = ConvNet(7, channels=channels, width=2).double()
    assert model(images(2, size, channels)).shape == (2, 7)
    assert [layer.out_channels for layer in model.modules() if isinstance(layer, nn.Conv2d)] == [
        *(2, 2),
        *(4, 4),
        *(8, 8),
    ]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_a_token_is_seen_by_none_before_it(dtype: torch.dtype) -> None:
    model = MODELS["transformer"](None).eval()
    tokens = torch.randint(10, (1, 8), dtype=dtype)
    changed = tokens.clone()
    changed[0, 4] = 9 - changed[0, 4]
    moved = (model(tokens) - model(changed)).abs().amax((0, 2))
    assert (moved[:4] < 1e-6).all()
    assert (moved[4:] > 1e-4).all()
    torch.testing.assert_close(model(tokens[:, :5]), model(tokens)[:, :5])


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    model = Transformer(10, length=8, width=64, depth=1, dropout=0.2)
    noise = model.draw(torch.zeros(50, 8))
    assert noise.shape == (3, 50, 8, 64)
    assert sorted(set(noise.flatten().tolist())) == [0, pytest.approx(1 / 0.8)]
    assert float(noise.mean()) == pytest.approx(1, abs=0.01)


def test_every_place_is_dropped_by_its_own_noise() -> None:
    model, inputs = noisy("transformer")
    noise = model.draw(inputs)
    outputs = model.compute(inputs, noise)
    for place in range(len(noise)):
        less = noise.clone()
        less[place] = 0
        assert not torch.allclose(model.compute(inputs, less), outputs)


def test_no_dropout_is_no_noise() -> None:
    model = Transformer(10, length=8, width=16, heads=2, dropout=0)
    tokens = torch.randint(10, (2, 8))
    torch.testing.assert_close(model(tokens), model.eval()(tokens))


BAD: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: ShakeShake26(0), ValueError, "`width` must be at least 2, got 0"),
    (lambda: ShakeShake26(5), ValueError, "`width` must be even, got 5. A skip joins two halves"),
    (lambda: ShakeShake26(4, 1), ValueError, "`classes` must be at least 2, got 1"),
    (
        lambda: ShakeShake26(4, shake="foo"),
        ValueError,
        "`shake` must be one of 'image', 'batch', got 'foo'",
    ),
    (lambda: ShakeShake26(4, forward=1), TypeError, "`forward` must be True or False, got 1"),  # type: ignore[arg-type]
    (lambda: ShakeShake26(4, backward=0), TypeError, "`backward` must be True or False, got 0"),  # type: ignore[arg-type]
    (
        lambda: MLP(4, 2, generator=3),  # type: ignore[arg-type]
        TypeError,
        r"`generator` must be a torch.Generator on the CPU or None, got 3. .*manual_seed",
    ),
    (lambda: MLP(0, 2), ValueError, "`inputs` must be at least 1, got 0"),
    (lambda: MLP(4, 1), ValueError, "`classes` must be at least 2, got 1"),
    (lambda: MLP(4, 2, width=-1), ValueError, "`width` must be at least 1, got -1"),
    (lambda: MLP(4, 2, depth=-1), ValueError, "`depth` must be at least 0, got -1"),
    (lambda: ConvNet(1), ValueError, "`classes` must be at least 2, got 1"),
    (lambda: ConvNet(2, channels=0), ValueError, "`channels` must be at least 1, got 0"),
    (lambda: ConvNet(2, width=1.5), TypeError, "`width` must be a whole number, got 1.5"),  # type: ignore[arg-type]
    (lambda: Transformer(1), ValueError, "`vocabulary` must be at least 2, got 1"),
    (lambda: Transformer(9, length=0), ValueError, "`length` must be at least 1, got 0"),
    (lambda: Transformer(9, width=0), ValueError, "`width` must be at least 1, got 0"),
    (lambda: Transformer(9, depth=-1), ValueError, "`depth` must be at least 0, got -1"),
    (lambda: Transformer(9, heads=3), ValueError, "`heads` must divide `width`, 128, got 3"),
    (lambda: Transformer(9, dropout=1), ValueError, r"`dropout` must be in \[0, 1\), got 1"),
    (
        lambda: MODELS["transformer"](None)(torch.zeros(1, 9)),
        ValueError,
        "at most 8 tokens, got 9. Build the model with a larger `length`",
    ),
    (
        lambda: start_(nn.Bilinear(2, 2, 2), None),
        TypeError,
        "must be a convolution, linear, an embedding or a norm, got Bilinear",
    ),
]


@pytest.mark.parametrize(("build", "error", "text"), BAD)
def test_a_bad_argument_is_told_requirement_value_and_cure(
    build: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        build()
