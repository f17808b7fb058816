"""Lanes on a GPU: one CUDA graph is one update of all lanes, with their models on a few streams.

The first updates run without a graph, while models are compiled and memory is allocated. Then one
is captured, and replayed for all others. What changes between updates is read on the device: the
position, which determines batches and their augmentation, and the optimizer's table of rates.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from weightdecay.hashing import word
from weightdecay.optim.elementwise import Elementwise
from weightdecay.records import RunConfig, Spec
from weightdecay.runs.build import DRAWS, model_of
from weightdecay.runs.lanes import CHUNK, Evaluation, LaneState, judged, summed
from weightdecay.runs.separate import Separate, give_generator
from weightdecay.tasks import Examples, Task
from weightdecay.tasks.measure import Measure

_Result = TypeVar("_Result")
#: Updates before the capture: torch's libraries choose their kernels in the first few.
WARM_UP = 3
#: Streams that lanes share; more are not faster.
STREAMS = 4
#: The most replays before the optimizer is told about them.
_TOLD_EVERY = 512


class Captured(Separate):
    """One compiled model per lane, in channels-last format; with autocast for bfloat16."""

    def __init__(self, configs: Sequence[RunConfig], task: Task, device: torch.device) -> None:
        super().__init__(configs, task, device)
        for config, model in zip(self.configs, self.models, strict=True):
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            give_generator(model, word(config.seed, DRAWS), device)
        self._streams = [torch.cuda.Stream(device) for _ in range(min(STREAMS, len(configs)))]  # type: ignore[no-untyped-call]
        self._at = torch.zeros(1, dtype=torch.int64, device=device)
        self._orders = torch.zeros_like(self._epoch_order(0))
        self._pool = torch.cuda.graph_pool_handle()
        self._graph: torch.cuda.CUDAGraph | None = None
        self._judges: dict[int, _Judge] = {}
        self._made = 0

    def advance(self, updates: int) -> None:
        with torch.cuda.device(self.device):
            self._advance(updates)

    def _advance(self, updates: int) -> None:
        self._orders.copy_(self._epoch_order(self.updates // self.per_epoch))
        with torch.backends.cudnn.flags(enabled=True, benchmark=True):
            while updates and self._made < WARM_UP:
                self._update()
                self._made += 1
                self.updates += 1
                updates -= 1
            if updates and self._graph is None:
                self._graph = self._captured(self._update)
        while updates:
            assert self._graph is not None
            made = min(updates, _TOLD_EVERY)
            for _ in range(made):
                self._graph.replay()
            for optimizer in self.optimizers.values():
                assert isinstance(optimizer, Elementwise)
                optimizer.replayed(made)
            self.updates += made
            updates -= made

    def verify(self) -> None:
        for optimizer in self.optimizers.values():
            assert isinstance(optimizer, Elementwise)
            optimizer.verify()
        super().verify()

    def _update(self) -> None:
        for optimizer in self.optimizers.values():
            optimizer.zero_grad()
        index = self._orders.index_select(1, self._at % self.per_epoch)[:, 0]
        inputs, targets = _compiled_prepare()(self, index, self._at)
        sums = self._on_streams(lambda lane: self._backward(lane, inputs[lane], targets[lane]))
        for optimizer in self.optimizers.values():
            optimizer.step()
        self._sums += torch.stack(sums, dim=1)
        self._at += 1

    def _on_streams(self, work: Callable[[int], _Result]) -> list[_Result]:
        """Do some work for every lane, each on its own stream, which never changes."""
        main = torch.cuda.current_stream(self.device)
        for stream in self._streams:
            stream.wait_stream(main)
        done = []
        for lane in range(len(self.models)):
            with torch.cuda.stream(self._streams[lane % len(self._streams)]):
                done.append(work(lane))
        for stream in self._streams:
            main.wait_stream(stream)
        return done

    def _backward(self, lane: int, inputs: Tensor, targets: Tensor) -> Tensor:
        model: Any = self.models[lane]
        model.train()
        noise = [model.draw(inputs)] if hasattr(model, "draw") else []
        batch = _channels_last(inputs), targets
        with self._precision(lane):
            loss, error = _compiled_measure()(self.task.measure, model, *batch, *noise)
        loss.backward()  # type: ignore[no-untyped-call]
        return torch.stack([loss.detach(), error]).double()

    def _precision(self, lane: int) -> torch.autocast:
        sixteen = self.configs[lane].precision == "bfloat16"
        return torch.autocast("cuda", torch.bfloat16, enabled=sixteen, cache_enabled=False)

    def _captured(self, work: Callable[[], None]) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        for model in self.models:
            if hasattr(model, "generator"):
                graph.register_generator_state(model.generator)
        with torch.cuda.graph(graph, pool=self._pool):
            work()
        return graph

    @torch.no_grad()
    def evaluate(self, examples: Examples) -> list[Evaluation]:
        if id(examples) not in self._judges:
            with torch.cuda.device(self.device):
                self._judges[id(examples)] = self._judge_of(examples)
        judge = self._judges[id(examples)]
        judge.start.zero_()
        judge.total.zero_()
        for _ in range(math.ceil(len(examples) / CHUNK)):
            judge.graph.replay()
        return summed([judge.total], len(examples), judge.missed[:, : len(examples)].flatten(1))

    def _judge_of(self, examples: Examples) -> "_Judge":
        """Return a graph that evaluates a chunk of examples and advances to the next."""
        start = torch.zeros(1, dtype=torch.int64, device=self.device)
        total = torch.zeros(3, len(self.models), dtype=torch.float64, device=self.device)
        places = torch.arange(min(CHUNK, len(examples)), device=self.device)
        padded = math.ceil(len(examples) / len(places)) * len(places)
        within = examples.targets.shape[1:] if self.task.measure.classifies else ()
        shape = len(self.models), padded, *within
        missed = torch.zeros(shape, dtype=torch.bool, device=self.device)

        def judge() -> None:
            index = start + places
            counted = index < len(examples)
            chunk = examples[index.clamp(max=len(examples) - 1)]
            inputs = _channels_last(self.task.prepare(chunk.inputs, None))

            def of_lane(lane: int) -> tuple[Tensor, Tensor]:
                self.models[lane].eval()
                with self._precision(lane):
                    outputs = self.models[lane](inputs)
                return judged(self.task.measure, outputs, chunk.targets, counted)

            sums, wrong = map(torch.stack, zip(*self._on_streams(of_lane), strict=True))
            total.add_(sums.T)
            missed.index_copy_(1, index, wrong.view(len(wrong), len(places), *shape[2:]))
            start.add_(len(places))

        with torch.backends.cudnn.flags(enabled=True, benchmark=True):
            judge()
            start.zero_()
            return _Judge(self._captured(judge), start, total, missed, places, examples)

    def state(self, lane: int) -> LaneState:
        state, generator = super().state(lane), getattr(self.models[lane], "generator", None)
        if isinstance(generator, torch.Generator):
            state["draws"] = generator.get_state()
        return state

    def load(self, states: Sequence[LaneState]) -> None:
        super().load(states)
        self._at.fill_(self.updates)
        for model, state in zip(self.models, states, strict=True):
            generator = getattr(model, "generator", None)
            if isinstance(generator, torch.Generator) and "draws" in state:
                generator.set_state(state["draws"])


@dataclass(frozen=True)
class _Judge:
    """A graph that evaluates examples, and the memory outside its pool that it reads."""

    graph: torch.cuda.CUDAGraph
    start: Tensor
    total: Tensor
    missed: Tensor
    places: Tensor
    examples: Examples


def can_capture(config: RunConfig, task: Task) -> bool:
    """Whether a model draws random numbers only from its own generator, so not by dropout."""
    layers = model_of(config, task).modules()
    return not any(isinstance(layer, nn.modules.dropout._DropoutNd) for layer in layers)


class Fitting:
    """Finds how many lanes fit into a GPU's memory, by one trial per kind of lane.

    A lane needs memory for weights, gradients, optimizer state and the activations of a batch.
    """

    def __init__(self) -> None:
        self._needed: dict[tuple[object, ...], int | None] = {}

    def tried(self, config: RunConfig, task: Task, device: torch.device) -> bool:
        """Whether this kind of lane was tried in this process."""
        return _kind_of_lane(config, task, device) in self._needed

    def __call__(self, config: RunConfig, task: Task, device: torch.device) -> int:
        """Return how many lanes of this kind fit.

        It is 0 for a model that cannot be captured, such as one that waits for the device.
        """
        kind = _kind_of_lane(config, task, device)
        torch.cuda.empty_cache()
        free, _ = torch.cuda.mem_get_info(device)
        if kind not in self._needed:
            self._needed[kind] = _memory_of_lane(config, task, device)
        needed = self._needed[kind]
        return 0 if needed is None else max(1, int(0.8 * free / needed))


fitting = Fitting()


def _kind_of_lane(config: RunConfig, task: Task, device: torch.device) -> tuple[object, ...]:
    """Return everything that a lane's memory depends on; a task's name alone is not enough."""
    builder = task.models[Spec.parse("model", config.model).name]
    parts = [(part.inputs.shape[1:], part.inputs.dtype) for part in (task.train, task.test)]
    named = config.algorithm, config.model, config.batch, config.precision, task.name
    return device, builder, task.prepare, task.measure, *parts, *named


def _memory_of_lane(config: RunConfig, task: Task, device: torch.device) -> int | None:
    """Return the bytes that a lane needs, by training one; None if it cannot be captured."""
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    lane = Captured([config], task, device)
    try:
        lane.advance(min(WARM_UP + 1, lane.per_epoch))
        lane.evaluate(lane.task.test[:CHUNK])
        torch.cuda.synchronize(device)
    except torch.OutOfMemoryError:  # there may be enough memory later
        raise
    except RuntimeError:
        return None
    return torch.cuda.max_memory_allocated(device) - before


@cache
def _compiled_measure() -> Callable[..., tuple[Tensor, Tensor]]:
    """Return `_measure`, compiled once for all lanes of a model; its noise is drawn before."""
    return torch.compile(_measure, dynamic=False)


def _measure(
    measure: Measure, model: Any, inputs: Tensor, targets: Tensor, *noise: Tensor
) -> tuple[Tensor, Tensor]:
    outputs = model.compute(inputs, *noise) if noise else model(inputs)
    loss, error, _ = measure(outputs, targets)
    return loss.mean(), error.float().mean()


@cache
def _compiled_prepare() -> Callable[..., tuple[Tensor, Tensor]]:
    return torch.compile(Captured._prepared, dynamic=False)


def _channels_last(inputs: Tensor) -> Tensor:
    last = inputs.ndim == 4 and inputs.is_floating_point()
    return inputs.contiguous(memory_format=torch.channels_last) if last else inputs
