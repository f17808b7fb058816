"""Every kernel makes the reference's update: one step to the last places, a thousand to 1e-5."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import CASES, Case, advance, every_case, parameter, start, weights
from weightdecay import SGDW, AdamW, Cosine, Normalized, WarmRestarts, Warmup, from_torch
from weightdecay.optim.kernels import table

KERNELS = ("foreach", *(["fused"] if torch.get_default_device().type == "cpu" else []), "triton")
#: What `make test` has of the cases under Triton's slow interpreter; the others are much alike.
INTERPRETED = ("sgd-nesterov", "adamw-amsgrad")
IN_TIME = {name: () if name in INTERPRETED else pytest.mark.slow for name in CASES}
FASTER = [
    pytest.param(
        case, kernel, id=f"{name}-{kernel}", marks=IN_TIME[name] if kernel == "triton" else ()
    )
    for name, case in CASES.items()
    for kernel in KERNELS
    if not (kernel == "fused" and case.options.get("nesterov"))
]
every_kernel = pytest.mark.parametrize(("case", "kernel"), FASTER)
every_interpreted_case = pytest.mark.parametrize(
    "case", [pytest.param(case, id=name, marks=IN_TIME[name]) for name, case in CASES.items()]
)


def shapes(dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Empty, scalar, one short of a block, one over a chunk."""
    generator = torch.Generator("cpu").manual_seed(5)
    sizes: list[tuple[int, ...]] = [(), (0,), (7,), (33, 31), (4097,)]
    return [
        torch.nn.Parameter(
            torch.randn(size, generator=generator, device="cpu")
            .to(dtype)
            .to(torch.get_default_device())
        )
        for size in sizes
    ]


def feed(opts: list[Any], t: int) -> None:
    """Give every optimizer the same gradients, whatever its weights."""
    for number, params in enumerate(
        zip(*([p for g in opt.param_groups for p in g["params"]] for opt in opts), strict=True)
    ):
        noise = np.random.default_rng([t, number]).normal(size=params[0].shape)
        for param in params:
            param.grad = torch.tensor(noise, dtype=param.dtype)


def in_last_places(
    one: torch.Tensor, other: torch.Tensor, before: torch.Tensor, rate: float
) -> float:
    """How far apart, in units in the last place of max(|θ|, ηα), θ before the update or after."""
    size = torch.maximum(before.abs(), other.abs()).clamp(min=rate)
    unit = torch.nextafter(size, torch.full_like(size, torch.inf)) - size
    return float(((one - other).abs() / unit).max()) if one.numel() else 0.0


@every_kernel
def test_one_step_from_equal_state_agrees_to_four_last_places(case: Case, kernel: str) -> None:
    schedule = Warmup(2, WarmRestarts(5, low=0.01))
    reference = case.build(shapes(), schedule=schedule, kernel="reference")
    for t in range(1, 12):
        fast = case.build(shapes(), schedule=schedule, kernel=kernel)
        fast.load_state_dict(copy.deepcopy(reference.state_dict()))
        for mine, theirs in zip(
            fast.param_groups[0]["params"], reference.param_groups[0]["params"], strict=True
        ):
            mine.data.copy_(theirs)
        rate, before = reference.param_groups[0]["lr"], weights(reference)
        feed([reference, fast], t)
        reference.step()
        fast.step()
        for tensors in zip(weights(fast), weights(reference), before, strict=True):
            assert in_last_places(*tensors, rate) <= 4


@pytest.mark.slow
@every_kernel
def test_a_thousand_steps_agree_to_1e_5(case: Case, kernel: str) -> None:
    """Decay so small that a factor 1 − ηλ rounded always the same way would show."""
    steps = 1000 if kernel != "triton" else 100
    options = {case.decay: 3.3e-5, "schedule": Cosine(steps, low=0.5)}
    opts = [
        case.build([parameter(start(60) + 1, torch.float32)], kernel=k, **options)
        for k in ("reference", kernel)
    ]
    for t in range(1, steps + 1):
        feed(opts, t)
        for opt in opts:
            opt.step()
    one, other = (weights(opt)[0] for opt in opts)
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kernel", ["reference", "foreach", None])
@pytest.mark.parametrize("name", ["sgdw", "adamw"])
def test_decay_alone_adds_no_bias(name: str, kernel: str | None) -> None:
    """The same λ a thousand times: its rounding must not always go the same way."""
    theta = parameter(start(60) + 1, torch.float32)
    opt = CASES[name].build([theta], kernel=kernel, weight_decay=3.3e-5)
    before = theta.detach().double()
    theta.grad = torch.zeros_like(theta)
    for _ in range(1000):
        opt.step()
    kept = (theta.detach().double().norm() / before.norm()).item()
    assert kept == pytest.approx((1 - 3.3e-5) ** 1000, rel=3e-6)


@pytest.mark.parametrize("kernel", ["foreach", None])
@every_case
def test_float64_agrees_to_1e_12(case: Case, kernel: str | None) -> None:
    opts = [
        case.build(shapes(torch.float64), kernel=k, schedule=Cosine(50))
        for k in ("reference", kernel)
    ]
    for t in range(1, 30):
        feed(opts, t)
        for opt in opts:
            opt.step()
    for one, other in zip(weights(opts[0]), weights(opts[1]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@settings(max_examples=40)
@given(
    name=st.sampled_from(sorted(CASES)),
    kernel=st.sampled_from(KERNELS),
    sizes=st.lists(st.integers(0, 5000), min_size=1, max_size=4),
    rates=st.lists(st.floats(1e-4, 0.3), min_size=1, max_size=3),
    decay=st.floats(1e-6, 0.3),
    maximize=st.booleans(),
    steps=st.integers(1, 3),
)
def test_any_groups_shapes_and_numbers(  # noqa: PLR0917
    name: str,
    kernel: str,
    sizes: list[int],
    rates: list[float],
    decay: float,
    maximize: bool,
    steps: int,
) -> None:
    case = CASES[name]
    kernel = "foreach" if case.options.get("nesterov") and kernel == "fused" else kernel
    opts = []
    for k in ("reference", kernel):
        groups = [
            {"params": [parameter(start(size), torch.float32) for size in sizes], "lr": lr}
            for lr in rates
        ]
        options = {case.decay: decay, "maximize": maximize, "schedule": Cosine(9, low=0.1)}
        opts.append(case.build(groups, kernel=k, **options))
    for t in range(1, steps + 1):
        feed(opts, t)
        for opt in opts:
            opt.step()
    for one, other in zip(weights(opts[1]), weights(opts[0]), strict=True):
        np.testing.assert_allclose(one, other, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize("rounding", ["stochastic", "compensated"])
@pytest.mark.parametrize("state_dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, pytest.param(torch.float16, marks=pytest.mark.slow)], ids=str
)
@every_interpreted_case
def test_16_bit_weights_are_rounded_to_the_same_bits(
    case: Case, dtype: torch.dtype, state_dtype: str, rounding: str
) -> None:
    """The kernel's random words are the reference's: nearly every weight is equal to the bit.

    Where float32 arithmetic differs in its last place, one in thousands may round the other way.
    """
    options = {"rounding": rounding, "state_dtype": state_dtype, "schedule": WarmRestarts(2)}
    opts = [case.build(shapes(dtype), kernel=k, **options) for k in ("reference", "triton")]
    for t in range(1, 4):
        feed(opts, t)
        for opt in opts:
            opt.step()
    ones, others = (torch.cat([w.flatten() for w in weights(opt)]) for opt in opts)
    assert (ones != others).double().mean() < 2e-3
    torch.testing.assert_close(ones, others, rtol=0.02, atol=0.02)


@pytest.mark.parametrize("kernel", ["reference", pytest.param("triton", marks=pytest.mark.slow)])
@pytest.mark.parametrize("rounding", ["stochastic", "compensated"])
@pytest.mark.parametrize("state_dtype", ["float32", "bfloat16"])
def test_16_bit_weights_decay_under_every_choice(
    kernel: str, rounding: str, state_dtype: str
) -> None:
    theta = torch.nn.Parameter(torch.randn(1024).bfloat16())
    before = theta.detach().float().norm()
    opt = AdamW(
        [theta], weight_decay=0.01, kernel=kernel, rounding=rounding, state_dtype=state_dtype
    )
    for _ in range(100):
        theta.grad = torch.zeros_like(theta)
        opt.step()
    assert float(theta.detach().float().norm() / before) == pytest.approx(0.99**100, rel=0.02)


def test_a_second_moment_in_bfloat16_does_not_stand_still() -> None:
    """1 − β₂ = 0.001 of it would round away, were it not rounded at random."""
    theta = torch.nn.Parameter(torch.zeros(4096, dtype=torch.bfloat16))
    opt = AdamW([theta], weight_decay=0.1, state_dtype="bfloat16")
    for _ in range(300):
        theta.grad = torch.ones_like(theta)
        opt.step()
    mean = float(opt.state[theta]["exp_avg_sq"].double().mean())
    assert mean == pytest.approx(1 - 0.999**300, rel=0.02)


def test_compensation_takes_two_bytes_a_weight_and_is_saved() -> None:
    theta = torch.nn.Parameter(torch.randn(64).bfloat16())
    opt = SGDW([theta], 0.1, weight_decay=0.001, rounding="compensated")
    advance(opt, 3)
    rest = opt.state[theta]["compensation"]
    assert (rest.dtype, rest.shape) == (torch.bfloat16, theta.shape)
    assert rest.any()
    assert torch.equal(opt.state_dict()["state"][0]["compensation"], rest)


@every_kernel
def test_a_resumed_run_goes_on_bit_for_bit(case: Case, kernel: str) -> None:
    def build() -> Any:
        decay = {"weight_decay": Normalized(0.1)} if case.decay == "weight_decay" else {}
        return case.build(shapes(), schedule=WarmRestarts(3), kernel=kernel, **decay)

    whole, halted, resumed = build(), build(), build()
    for t in range(1, 9):
        feed([whole], t)
        whole.step()
    for t in range(1, 5):
        feed([halted], t)
        halted.step()
    resumed.load_state_dict(copy.deepcopy(halted.state_dict()))
    for mine, theirs in zip(
        resumed.param_groups[0]["params"], halted.param_groups[0]["params"], strict=True
    ):
        mine.data.copy_(theirs)
    for t in range(5, 9):
        feed([resumed], t)
        resumed.step()
    assert all(map(torch.equal, weights(whole), weights(resumed)))


@every_kernel
def test_gradients_may_come_and_go(case: Case, kernel: str) -> None:
    opts = [case.build(shapes(), kernel=k) for k in ("reference", kernel)]
    for t in range(1, 8):
        feed(opts, t)
        for opt in opts:
            params = opt.param_groups[0]["params"]
            params[t % 5].grad = None
            opt.step()
    for one, other in zip(weights(opts[1]), weights(opts[0]), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("kernel", ["reference", *KERNELS])
@pytest.mark.parametrize("name", ["sgdw", "adamw"])
def test_states_and_weights_may_be_replaced(name: str, kernel: str) -> None:
    """As those do who move states between devices: what was found out is found out again."""
    case = CASES[name]
    opts = [case.build(shapes(), kernel=kernel) for _ in range(2)]
    for t in range(1, 6):
        feed(opts, t)
        moved = opts[1]
        for state in moved.state.values():
            state.update({k: v.clone() for k, v in state.items()})
        if t == 3:
            moved.param_groups[0]["params"][3].data = weights(moved)[3]
        for opt in opts:
            opt.step()
    assert all(map(torch.equal, weights(opts[0]), weights(opts[1])))
    assert all(map(torch.equal, *([s for d in o.state.values() for s in d.values()] for o in opts)))


@pytest.mark.parametrize("by_step", [False, True])
@every_kernel
def test_gradscaler_is_served(
    case: Case, kernel: str, by_step: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it unscales and skips itself, or leaves both to `step`, as in a CUDA graph."""
    monkeypatch.setattr(case.cls, "_step_supports_amp_scaling", by_step)
    ends = []
    for scaler in (None, torch.amp.GradScaler(torch.get_default_device().type, init_scale=8.0)):
        theta = parameter(dtype=torch.float32)
        opt = case.build([theta], kernel=kernel, schedule=WarmRestarts(3))
        for factor in (1.0, float("inf"), 0.5):
            opt.zero_grad()
            loss = (theta**2).sum() * factor
            if scaler is not None:
                scaler.scale(loss).backward()  # type: ignore[no-untyped-call]
                scaler.step(opt)
                scaler.update()
            elif factor < float("inf"):
                loss.backward()  # type: ignore[no-untyped-call]
                opt.step()
        ends.append((weights(opt)[0], opt.param_groups[0]["updates"]))
    (plain, made), (scaled, made_scaled) = ends
    assert made == made_scaled == 2
    torch.testing.assert_close(scaled, plain, rtol=1e-6, atol=1e-7)


def test_strided_and_mixed_parameters_take_another_path_with_the_same_result() -> None:
    base = torch.randn(6, 8)
    strided, complex_ = base[:, ::2], torch.complex(base, base)
    kinds = [base.t(), strided, base.double(), base.bfloat16(), complex_, base[1]]
    opts = []
    for k in ("reference", None):
        params = [torch.nn.Parameter(copy.deepcopy(kind)) for kind in kinds]
        opts.append(AdamW(params, 0.02, weight_decay=0.1, kernel=k))
    for t in range(1, 6):
        for pair in zip(*(opt.param_groups[0]["params"] for opt in opts), strict=True):
            noise = torch.tensor(np.random.default_rng(t).normal(size=pair[0].shape))
            for param in pair:
                param.grad = noise.to(param.dtype)
        for opt in opts:
            opt.step()
    for one, other in zip(weights(opts[1]), weights(opts[0]), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "param", "text"),
    [
        ("fused", lambda: torch.zeros(3, device="cpu").bfloat16(), "float64, got torch.bfloat16"),
        (
            "fused",
            lambda: torch.zeros(3, 4, device="cpu")[:, ::2],
            "contiguous parameters and grad",
        ),
        ("foreach", lambda: torch.zeros(3).half(), "float32 or all float64, got torch.float16"),
        (
            "triton",
            lambda: torch.zeros(3).double(),
            "bfloat16 or float16 parameters, got torch.flo",
        ),
        ("triton", lambda: torch.zeros(3, 4)[:, ::2], "contiguous parameters and gradients"),
    ],
)
def test_a_kernel_that_cannot_serve_says_what_it_wants(kernel: str, param: Any, text: str) -> None:
    theta = torch.nn.Parameter(param())
    opt = AdamW([theta], weight_decay=0.1, kernel=kernel)
    theta.grad = torch.ones_like(theta)
    with pytest.raises(RuntimeError, match=rf"kernel='{kernel}' must be given .*{text}"):
        opt.step()


def test_without_triton_its_kernel_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "find_spec", lambda _: None)
    with pytest.raises(RuntimeError, match="triton, which is not installed: pip install triton"):
        one("triton")


def test_fused_sgd_with_nesterov_says_so() -> None:
    theta = torch.nn.Parameter(torch.zeros(3, device="cpu"))
    opt = SGDW([theta], 0.1, weight_decay=0.1, nesterov=True, kernel="fused")
    theta.grad = torch.ones_like(theta)
    with pytest.raises(RuntimeError, match="momentum without nesterov"):
        opt.step()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        (
            {"kernel": "cuda"},
            ValueError,
            "`kernel` must be one of 'triton', 'fused', .* got 'cuda'",
        ),
        ({"kernel": 3}, TypeError, "`kernel` must be one of .* got 3"),
        ({"rounding": "nearest"}, ValueError, "`rounding` must be one of 'stochastic'"),
        ({"state_dtype": torch.float32}, TypeError, "`state_dtype` must be one of 'float32'"),
        ({"l2": 0.1}, TypeError, r"AdamW has no `l2`\. It has `lr`"),
        ({"fused": True}, TypeError, "AdamW has no `fused`. Leave it out"),
    ],
)
def test_a_bad_choice_is_refused(options: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        AdamW([parameter()], weight_decay=0.1, **options)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_a_16_bit_run_of_torchs_goes_on_with_its_16_bit_states(dtype: torch.dtype) -> None:
    theta = parameter(dtype=dtype)
    theirs = torch.optim.AdamW([theta], 0.01, weight_decay=1.0)
    advance(theirs, 2)
    ours = AdamW([theta], 0.01, weight_decay=0.1)
    ours.load_state_dict(from_torch(theirs.state_dict()))
    advance(ours, 2, first=3)
    assert theta.isfinite().all()
    assert ours.state[theta]["exp_avg"].dtype is dtype


def one(kernel: str | None = None, **options: Any) -> tuple[torch.nn.Parameter, Any]:
    theta = torch.nn.Parameter(torch.ones(300))
    opt = AdamW([theta], 0.1, weight_decay=0.1, kernel=kernel, **options)
    theta.grad = torch.ones_like(theta)
    opt.step()
    return theta, opt


every_way = pytest.mark.parametrize("kernel", ["reference", *KERNELS])


def test_a_state_of_another_shape_is_refused() -> None:
    _, small = one()
    theta = torch.nn.Parameter(torch.ones(4000))
    opt = AdamW([theta], 0.1, weight_decay=0.1)
    with pytest.raises(ValueError, match=r"`exp_avg` must have its parameter's shape \(4000,\)"):
        opt.load_state_dict(small.state_dict())


@pytest.mark.parametrize("kernel", [None, "triton"])
def test_a_parameter_may_become_larger_or_of_another_dtype(kernel: str | None) -> None:
    theta = torch.nn.Parameter(torch.ones(10))
    opt = SGDW([theta], 0.1, momentum=0.0, weight_decay=0.1, kernel=kernel)
    for data in (torch.ones(10), torch.ones(100_000), torch.ones(3), torch.ones(3).bfloat16()):
        theta.grad = None
        theta.data = data
        theta.grad = torch.ones_like(theta)
        opt.step()
        torch.testing.assert_close(
            theta.detach().float(), torch.full(data.shape, 0.8), atol=0.01, rtol=0
        )


@every_way
def test_state_that_was_cleared_or_put_in_place_is_looked_at(kernel: str) -> None:
    fresh, _ = one(kernel)
    for reset in ("clear", "replace", "assign", "step"):
        theta, opt = one(kernel)
        theta.data.fill_(1.0)
        state = opt.state[theta]
        if reset == "clear":
            opt.state.clear()
        elif reset == "replace":
            opt.state = type(opt.state)(dict)
        elif reset == "assign":
            opt.state[theta] = {key: torch.zeros_like(value) for key, value in state.items()}
        else:
            for value in state.values():
                value.zero_()
        opt.step()
        torch.testing.assert_close(theta, fresh)
        assert opt.state[theta]["step"] == 1


@every_way
def test_a_parameter_may_move_to_another_group(kernel: str) -> None:
    thetas = [torch.nn.Parameter(torch.ones(5)) for _ in range(2)]
    groups: Any = [{"params": [thetas[0]], "lr": 0.1}, {"params": [thetas[1]], "lr": 1e-5}]
    opt = SGDW(groups, weight_decay=0.0, momentum=0.0, kernel=kernel, lr=1.0)
    for theta in thetas:
        theta.grad = torch.ones_like(theta)
    opt.step()
    opt.param_groups[0]["params"], opt.param_groups[1]["params"] = [thetas[1]], [thetas[0]]
    opt.step()
    torch.testing.assert_close(thetas[0].detach(), torch.full((5,), 0.9 - 1e-5))
    torch.testing.assert_close(thetas[1].detach(), torch.full((5,), 0.9 - 1e-5))


@every_way
def test_switches_of_a_group_may_be_turned(kernel: str) -> None:
    if kernel == "fused":
        kernel = "foreach"  # which has no nesterov
    ends = []
    for k in ("reference", kernel):
        theta = torch.nn.Parameter(torch.ones(5))
        opt = SGDW([theta], 0.1, momentum=0.0, weight_decay=0.1, kernel=k)
        for change in ({}, {"momentum": 0.9}, {"nesterov": True}):
            opt.param_groups[0].update(change)
            for _ in range(2):
                theta.grad = torch.ones_like(theta)
                opt.step()
        ends.append(theta.detach())
    torch.testing.assert_close(*ends)


@every_way
def test_a_gradient_may_turn_in_place(kernel: str) -> None:
    theta = torch.nn.Parameter(torch.zeros(3, 3))
    grad = torch.arange(9.0).view(3, 3)
    opt = SGDW([theta], 1.0, momentum=0.0, weight_decay=0.1, kernel=_or_other(kernel))
    for turned in (grad, grad.t()):
        theta.grad = turned
        opt.step()
    torch.testing.assert_close(theta.detach(), -0.9 * grad - grad.t())


def _or_other(kernel: str) -> str | None:
    """A strided gradient is served by another kernel: leave the choice, but to the reference."""
    return kernel if kernel == "reference" else None


def test_channels_last_is_served_and_keeps_its_plan() -> None:
    conv = torch.nn.Conv2d(4, 6, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    opt = AdamW(conv.parameters(), 0.1, weight_decay=0.1)
    plans = set()
    for _ in range(3):
        for param in conv.parameters():
            param.grad = torch.randn_like(param)
        opt.step()
        plans.add(id(opt._plan))
    assert len(plans) == 1


@pytest.mark.parametrize(
    ("dtype", "size", "rate"), [("bfloat16", 1.003, 1e-6), ("float16", 1e-3, 1e-5)]
)
def test_a_compensated_weight_does_not_stall(dtype: str, size: float, rate: float) -> None:
    theta = torch.nn.Parameter(torch.full((20_000,), size).to(getattr(torch, dtype)))
    opt = SGDW([theta], 0.1, momentum=0.0, weight_decay=rate, rounding="compensated")
    theta.grad = torch.zeros_like(theta)
    before = theta.detach().double()
    for _ in range(500):
        opt.step()
    rest = opt.state[theta]["compensation"]
    lost = (before - theta.detach().double() - rest.double()).mean() / before.mean()
    assert float(lost) == pytest.approx(500 * rate, rel=0.1)


@pytest.mark.parametrize("kernel", ["reference", "triton"])
def test_scaled_16_bit_gradients_do_not_underflow(kernel: str) -> None:
    theta = torch.nn.Parameter(torch.ones(8, dtype=torch.float16))
    opt: Any = SGDW([theta], 0.1, weight_decay=0.1, kernel=kernel)
    theta.grad = torch.full_like(theta, 1e-3)
    opt.found_inf, opt.grad_scale = torch.zeros(1), torch.full((1,), 65536.0)
    opt.step()
    assert float(opt.state[theta]["momentum_buffer"][0]) == pytest.approx(1e-4 / 65536, rel=1e-2)


def test_loading_leaves_rounding_and_what_it_keeps_to_the_run() -> None:
    theta = torch.nn.Parameter(torch.ones(8, dtype=torch.bfloat16))
    saved = AdamW([theta], weight_decay=0.1, rounding="compensated")
    theta.grad = torch.ones_like(theta)
    saved.step()
    wide = torch.nn.Parameter(torch.ones(8))
    other = AdamW([wide], weight_decay=0.1)
    other.load_state_dict(saved.state_dict())
    assert other.param_groups[0]["rounding"] == "stochastic"
    wide.grad = torch.ones_like(wide)
    other.step()
    assert "compensation" not in other.state[wide]
