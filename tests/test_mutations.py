"""A handful of deliberate wrong formulas, each of which the suite must notice.

A mutant is a copy of the package with one piece of one function changed, on which the named tests
are run. The piece is found by its syntax, wherever the function is: a file may be renamed and a
line reformatted without a mutant being lost. Importing torch takes longer than most of those tests,
so one process imports it once and forks for every mutant.
"""

import ast
import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

pytestmark = pytest.mark.cpu("a wrong formula is as wrong there, and each mutant is a process")
ROOT = Path(__file__).parents[1]


class Mutant(NamedTuple):
    """A function or method, an expression or statement in it, a wrong one, and tests that fail."""

    function: str
    right: str
    wrong: str
    tests: str


MUTANTS = {
    "decay multiplied by lr": Mutant(
        "adam_",
        "multiplier * (lr * direction + weight_decay * param)",
        "multiplier * lr * (direction + weight_decay * param)",
        "algorithms",
    ),
    "decay not scheduled": Mutant(
        "adam_",
        "multiplier * (lr * direction + weight_decay * param)",
        "multiplier * lr * direction + weight_decay * param",
        "algorithms",
    ),
    "decay after the update": Mutant(
        "adam_",
        "param -= multiplier * (lr * direction + weight_decay * param)",
        "param -= multiplier * lr * direction; param *= 1 - multiplier * weight_decay",
        "algorithms",
    ),
    "no bias correction of m": Mutant(
        "adam_",
        "exp_avg / (1 - beta1**step)",
        "exp_avg / 1",
        "algorithms",
    ),
    "bias correction one step late": Mutant(
        "adam_",
        "second / (1 - beta2**step)",
        "second / (1 - beta2 ** (step + 1))",
        "algorithms",
    ),
    "eps inside the root": Mutant(
        "adam_",
        "square.sqrt() + eps",
        "(square + eps).sqrt()",
        "algorithms",
    ),
    "eps before bias correction": Mutant(
        "adam_",
        "square.sqrt() + eps",
        "square.sqrt() + eps / (1 - beta2**step) ** 0.5",
        "algorithms",
    ),
    "v of the unregularized gradient": Mutant(
        "adam_",
        "grad = grad + l2 * param",
        "exp_avg.add_(l2 * param, alpha=1 - beta1)",
        "algorithms",
    ),
    "amsgrad forgets": Mutant(
        "adam_",
        "torch.maximum(max_exp_avg_sq, exp_avg_sq, out=max_exp_avg_sq)",
        "torch.maximum(max_exp_avg_sq, exp_avg_sq)",
        "algorithms",
    ),
    "lr outside the momentum": Mutant(
        "sgd_",
        "momentum_buffer.mul_(momentum).add_(step)",
        "m = momentum_buffer; m.mul_(momentum).add_(grad); momentum_buffer = m * lr",
        "algorithms",
    ),
    "momentum ignored": Mutant(
        "sgd_",
        "step + momentum * momentum_buffer if nesterov else momentum_buffer",
        "step + momentum * momentum_buffer if nesterov else step",
        "algorithms",
    ),
    "decay through the momentum": Mutant(
        "sgd_",
        "step = multiplier * lr * grad",
        "step = multiplier * (lr * grad + weight_decay * param); weight_decay = 0.0",
        "algorithms",
    ),
    "nesterov is plain momentum": Mutant(
        "sgd_",
        "step + momentum * momentum_buffer if nesterov else momentum_buffer",
        "momentum_buffer",
        "algorithms",
    ),
    "eta from initial_lr": Mutant(
        "multiplier_of",
        "lr / base if base else 1.0",
        'lr / group.get("initial_lr", base)',
        "schedulers",
    ),
    "normalization changes a step late": Mutant(
        "coming_of",
        "schedule.cycle(t).length",
        "schedule.cycle(max(t - 1, 0)).length",
        "algorithms -k normalization_changes",
    ),
    "restart a step late": Mutant(
        "cycle_at",
        "bisect_right(ends, t)",
        "bisect_right(ends, t - 1)",
        "schedules",
    ),
    "probe counts as an update": Mutant(
        "ScheduledOptimizer._update_and_count",
        "self._is_probed()",
        "False",
        "state -k touches_no_weight",
    ),
    "round to nearest": Mutant(
        "stochastic_round",
        "torch.where(value.isfinite(), rounded, value)",
        "value",
        "sixteen_bit",
    ),
    "states cast to the parameter's dtype": Mutant(
        "_merged",
        "saved.detach().to(saved.device if on_host else param.device, copy=True)",
        "saved.detach().to(param.device, saved.dtype if on_host else param.dtype, copy=True)",
        "state",
    ),
    "the class decays too": Mutant(
        "Decoupled._step_original",
        'group["weight_decay"] = group.get("l2", 0.0)',
        'group.setdefault("weight_decay", group.get("l2"))',
        "decouple",
    ),
    "a class asked for L2 does not hear of it": Mutant(
        "Decoupled._step_original",
        'group.get("l2", 0.0)',
        "0.0",
        "coupled -k is_the_class_itself",
    ),
    "any decay of a class passes for L2": Mutant(
        "regularizes",
        "1e-3 * (other - start).norm()",
        "1e3 * (other - start).norm()",
        "coupled -k refused",
    ),
    "a class that puts weights back passes": Mutant(
        "_fault_of_decay",
        "1e-3 * _LAMBDA * before.norm()",
        "1e3 * _LAMBDA * before.norm()",
        "decouple -k refused_where",
    ),
    "a count is cut up like a weight": Mutant(
        "Stacked._as_handed",
        "key in _COUNTS",
        'key == "step"',
        "coupled -k as_a_row",
    ),
    "decay of the weights after the class's step": Mutant(
        "Decoupled._make_update",
        "rate * _wide(local(old))",
        "rate * _wide(local(param))",
        "decouple",
    ),
    "hooks fire twice": Mutant(
        "Decoupled._step_original",
        "unhooked(self.original.step)(self)",
        "self._optimizer_step_pre_hooks = hooks[0]; self.original.step(self)",
        "decouple -k hooks_fire_once",
    ),
    "always rounding the factor of decay alike": Mutant(
        "factor",
        'group["updates"] * _GOLDEN % 1 < share',
        "True",
        "kernels -k no_bias",
    ),
    "the kernel decays by lr": Mutant(
        "update_block",
        "theta -= step + decay * theta",
        "theta -= step + lr * decay * theta",
        "kernels -k one_step",
    ),
    "a skipped update is counted": Mutant(
        "Elementwise._make_update",
        "if scaling is not None and bool(scaling[0]):\n    return False",
        "if scaling is not None and bool(scaling[0]):\n    return True",
        "kernels -k gradscaler",
    ),
    "a plan is never dropped": Mutant(
        "Elementwise._planned",
        "grads is not None and self._plan.holds(grads, self.state)",
        "grads is not None",
        "kernels -k replaced",
    ),
    "every epoch in the same order": Mutant(
        "Lanes._epoch_order",
        "word(self._seeds, ORDER, epoch, places)",
        "word(self._seeds, ORDER, 0, places)",
        "runs -k order_of_its_own",
    ),
    "augmentation that starts anew": Mutant(
        "Lanes._prepared",
        "word(self._seeds, AUGMENTATION, update, place)",
        "word(self._seeds, AUGMENTATION, id(self), place)",
        "killed -k goes_on_alone",
    ),
    "lanes without twins": Mutant(
        "Stacked.__init__",
        "max(2, -(-self._real // even) * even)",
        "self._real",
        "runs -k neighbours",
    ),
    "an epoch's sums are not saved": Mutant(
        "Lanes.state",
        "self._sums[:, lane].tolist()",
        "[0.0, 0.0]",
        "killed -k goes_on_alone",
    ),
    "a damaged checkpoint is opened": Mutant(
        "read",
        "head != _MAGIC + hashlib.sha256(body).hexdigest().encode()",
        "not head",
        "killed -k serves",
    ),
    "held-out data are trained on": Mutant(
        "split",
        "order[held : held + used]",
        "order[:used]",
        "runs -k held_out",
    ),
    "replays that do not move on": Mutant(
        "begin_replay",
        "tl.store(counts + 1, made + taken)",
        "tl.store(counts + 1, made)",
        "graphs -k next_row",
    ),
    "a first replay that loads nothing": Mutant(
        "begin_replay",
        "tl.where(made < 0, 0, words)",
        "words",
        "graphs -k next_row",
    ),
    "an overflow that counts": Mutant(
        "begin_replay",
        "tl.where(tl.load(found_inf) == 0, 1, 0)",
        "1",
        "graphs -k overflow",
    ),
    "rates that are not looked at": Mutant(
        "Pack._pause",
        "self._lanes.verify()",
        "pass",
        "what_runs_leave -k frozen",
    ),
    "planned rates in a record": Mutant(
        "Lanes.rates",
        "return used.lr, decay",
        'return group["lr"], decay',
        "what_runs_leave -k applied",
    ),
    "of several results the last counts": Mutant(
        "Ledger.note",
        'self.results.setdefault(value["run"], place)',
        'self.results[value["run"]] = place',
        "sweeps -k several_results",
    ),
    "a checksum that is not compared": Mutant(
        "_is_unchanged",
        "int(found[1], 16) != crc32(memoryview(line)[: found.start()])",
        "False",
        "damage -k flipped",
    ),
    "a half-written line stays": Mutant(
        "Writer.append",
        "self._file.truncate(self._size)",
        "pass",
        "sweeps -k may_not_grow",
    ),
    "claims that claim nothing": Mutant(
        "Claims.take",
        "files.lock_byte(self._file(_file_of(run)), _byte(run), held=True)",
        "True",
        "sweeps -k claimed",
    ),
    "one alone trains as one alone": Mutant(
        "train_events",
        "stacked or len(lanes) > 1",
        "len(lanes) > 1",
        "sweeps -k depend_on_packs",
    ),
    "the sign of s": Mutant(
        "coupling",
        'np.log2(measured.decays) - (rates if convention == "torch" else 0 * rates)',
        'np.log2(measured.decays) + (rates if convention == "torch" else 0 * rates)',
        "results_coupling -k torch",
    ),
    "a tuner's best decay moves the other way with the epochs": Mutant(
        "exponents",
        "0.5 - (long - short) / doublings",
        "0.5 + (long - short) / doublings",
        "tuning -k rule",
    ),
    "a tuner's rule keeps what was believed before its runs": Mutant(
        "believed",
        "weights[rule] /= max(int(rule.sum()), 1)",
        "weights[rule] /= 1",
        "tuning -k both_rules_begin",
    ),
    "a round that was begun is finished beyond the spend": Mutant(
        "Tuning._affordable",
        "left >= 0",
        "left < 9999",
        "tune -k lower_spend",
    ),
    "runs of a killed round are forgotten": Mutant(
        "Tuning.plan",
        "list(self._affordable(begun)) or list(self._asked())",
        "list(self._asked())",
        "tune -k killed_after",
    ),
}


def functions(tree: ast.AST, path: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield all functions of a file by their names, those of classes as Class.method."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield path + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{path}{node.name}.")


class Change(ast.NodeTransformer):
    """Replace each piece of code that reads like the right one, and count them."""

    def __init__(self, right: str, wrong: str) -> None:
        [piece], self._wrong = ast.parse(right).body, ast.parse(wrong).body
        self._right = ast.dump(piece.value if isinstance(piece, ast.Expr) else piece)
        self.count = 0

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        is_line = isinstance(node, ast.Expr) and ast.dump(node.value) == self._right
        if not is_line and ast.dump(node) != self._right:
            return self.generic_visit(node)
        self.count += 1
        if isinstance(node, ast.stmt):
            return self._wrong
        [instead] = self._wrong
        assert isinstance(instead, ast.Expr), "an expression is replaced by another"
        return instead.value


def changed(mutant: Mutant, package: Path) -> None:
    """Write the wrong piece over the right one, which must be there once."""
    found = 0
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        change = Change(mutant.right, mutant.wrong)
        for name, function in functions(tree):
            if name == mutant.function:
                change.visit(function)
        if change.count:
            path.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
        found += change.count
    assert found == 1, f"what is to be changed is there {found} times"


#: Reads a folder of sources and pytest's options from each line, and prints pytest's exit status.
#: It must not import the package, of which every mutant has its own.
FORKING = """
import json, os, pytest, sys, torch._dynamo

for line in sys.stdin:
    source, log, options = json.loads(line)
    if not (child := os.fork()):
        with open(log, "w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        sys.path.insert(0, source)
        os.environ["PYTHONPATH"] = source
        status = pytest.main(options)
        sys.stdout.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
Tested: TypeAlias = Callable[[Path, list[str]], tuple[int, str]]


@pytest.fixture(scope="module")
def tested() -> Iterator[Tested]:
    """Run tests on the package in a folder; return pytest's exit status and what it printed."""
    hidden = {"CUDA_VISIBLE_DEVICES": "", "TRITON_INTERPRET": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", FORKING],
        cwd=ROOT,
        env={**os.environ, **hidden},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        asked, answered = process.stdin, process.stdout
        assert asked is not None
        assert answered is not None

        def run(folder: Path, options: list[str]) -> tuple[int, str]:
            log = folder / "pytest.log"
            asked.write(json.dumps([str(folder), str(log), options]) + "\n")
            asked.flush()
            return int(answered.readline()), log.read_text(encoding="utf-8")

        yield run


def test_what_every_mutant_changes_is_there_once() -> None:
    """So that a change of the package that loses a mutant is noticed before all of them run."""
    found: dict[str, list[ast.AST]] = {}
    for path in (ROOT / "src" / "weightdecay").rglob("*.py"):
        for name, function in functions(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(name, []).append(function)
    for name, mutant in MUTANTS.items():
        change = Change(mutant.right, mutant.wrong)
        for function in found.get(mutant.function, []):
            change.visit(copy.deepcopy(function))
        assert change.count == 1, name


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_formula_is_noticed(mutant: Mutant, tmp_path: Path, tested: Tested) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src")
    changed(mutant, tmp_path / "src" / "weightdecay")
    name, *selected = mutant.tests.split()
    options = ["-n0", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=unshrunk"]
    status, said = tested(tmp_path / "src", [*options, f"tests/test_{name}.py", *selected])
    if status == 0 and " passed" not in said and "it is not installed" in said:
        pytest.skip("the package that would notice is not installed")
    assert status == 1, said[-2000:]
    assert "1 failed" in said
