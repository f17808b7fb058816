"""A handful of deliberate wrong formulas, each of which the suite must notice.

Every mutant is a copy of the package with one line changed, on which the named tests are run.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cpu("a wrong formula is as wrong there, and each mutant is a process")
ROOT = Path(__file__).parents[1]

# file, the right line, the wrong one, the tests that must fail
MUTANTS: dict[str, tuple[str, str, str, str]] = {
    "decay multiplied by lr": (
        "optim/adam.py",
        "multiplier * (lr * direction + weight_decay * param)",
        "multiplier * lr * (direction + weight_decay * param)",
        "algorithms",
    ),
    "decay not scheduled": (
        "optim/adam.py",
        "multiplier * (lr * direction + weight_decay * param)",
        "multiplier * lr * direction + weight_decay * param",
        "algorithms",
    ),
    "decay after the update": (
        "optim/adam.py",
        "    param -= multiplier * (lr * direction + weight_decay * param)",
        "    param -= multiplier * lr * direction; param *= 1 - multiplier * weight_decay",
        "algorithms",
    ),
    "no bias correction of m": (
        "optim/adam.py",
        "exp_avg / (1 - beta1**step)",
        "exp_avg / 1",
        "algorithms",
    ),
    "bias correction one step late": (
        "optim/adam.py",
        "second / (1 - beta2**step)",
        "second / (1 - beta2 ** (step + 1))",
        "algorithms",
    ),
    "eps inside the root": (
        "optim/adam.py",
        "(square.sqrt() + eps)",
        "(square + eps).sqrt()",
        "algorithms",
    ),
    "eps before bias correction": (
        "optim/adam.py",
        "(square.sqrt() + eps)",
        "(square.sqrt() + eps / (1 - beta2**step) ** 0.5)",
        "algorithms",
    ),
    "v of the unregularized gradient": (
        "optim/adam.py",
        "        grad = grad + l2 * param  # line 6\n    exp_avg.lerp_(grad, 1 - beta1)",
        "        exp_avg.add_(l2 * param, alpha=1 - beta1)\n    exp_avg.lerp_(grad, 1 - beta1)",
        "algorithms",
    ),
    "amsgrad forgets": (
        "optim/adam.py",
        "torch.maximum(max_exp_avg_sq, exp_avg_sq, out=max_exp_avg_sq)",
        "torch.maximum(max_exp_avg_sq, exp_avg_sq)",
        "algorithms",
    ),
    "lr outside the momentum": (
        "optim/sgd.py",
        "        momentum_buffer.mul_(momentum).add_(step)  # line 8",
        "        m = momentum_buffer; m.mul_(momentum).add_(grad); momentum_buffer = m * lr",
        "algorithms",
    ),
    "momentum ignored": (
        "optim/sgd.py",
        "if nesterov else momentum_buffer",
        "if nesterov else step",
        "algorithms",
    ),
    "decay through the momentum": (
        "optim/sgd.py",
        "    step = multiplier * lr * grad",
        "    step = multiplier * (lr * grad + weight_decay * param); weight_decay = 0.0",
        "algorithms",
    ),
    "nesterov is plain momentum": (
        "optim/sgd.py",
        "step + momentum * momentum_buffer if nesterov else momentum_buffer",
        "momentum_buffer",
        "algorithms",
    ),
    "eta from initial_lr": (
        "optim/scheduled.py",
        "        multiplier = lr / base if base else 1.0",
        '        multiplier = lr / group.get("initial_lr", base)',
        "schedulers",
    ),
    "normalization changes a step late": (
        "optim/rates.py",
        "schedule.cycle(t).length",
        "schedule.cycle(max(t - 1, 0)).length",
        "algorithms",
    ),
    "restart a step late": (
        "schedules.py",
        "    index = bisect_right(ends, t)",
        "    index = bisect_right(ends, t - 1)",
        "schedules",
    ),
    "probe counts as an update": (
        "optim/scheduled.py",
        "        if self._is_probed():",
        "        if False:",
        "state",
    ),
    "round to nearest": (
        "optim/rounding.py",
        "torch.where(value.isfinite(), rounded, value)",
        "value",
        "sixteen_bit",
    ),
    "states cast to the parameter's dtype": (
        "optim/loading.py",
        "saved.detach().to(saved.device if on_host else param.device, copy=True)",
        "saved.detach().to(param.device, saved.dtype if on_host else param.dtype, copy=True)",
        "state",
    ),
    "the class decays too": (
        "optim/decouple.py",
        '            group["weight_decay"] = group.get("l2", 0.0)\n',
        '            group.setdefault("weight_decay", group.get("l2"))\n',
        "decouple",
    ),
    "a class asked for L2 does not hear of it": (
        "optim/decouple.py",
        'group.get("l2", 0.0)',
        "0.0",
        "coupled -k is_the_class_itself",
    ),
    "any decay of a class passes for L2": (
        "optim/trials.py",
        "<= 1e-3 * (other - start).norm()",
        "<= 1e3 * (other - start).norm()",
        "coupled -k refused",
    ),
    "a class that puts weights back passes": (
        "optim/trials.py",
        "<= 1e-3 * _LAMBDA * before.norm()",
        "<= 1e3 * _LAMBDA * before.norm()",
        "decouple -k refused_where",
    ),
    "a count is cut up like a weight": (
        "runs/stacked.py",
        "if key in _COUNTS else",
        'if key == "step" else',
        "coupled -k as_a_row",
    ),
    "decay of the weights after the class's step": (
        "optim/decouple.py",
        "rate * _wide(local(old))",
        "rate * _wide(local(param))",
        "decouple",
    ),
    "hooks fire twice": (
        "optim/decouple.py",
        "unhooked(self.original.step)(self)",
        "self._optimizer_step_pre_hooks = hooks[0]; self.original.step(self)",
        "decouple",
    ),
    "always rounding the factor of decay alike": (
        "optim/kernels/fused.py",
        "% 1 < share else",
        "% 1 < 2 else",
        "kernels -k no_bias",
    ),
    "the kernel decays by lr": (
        "optim/kernels/program.py",
        "theta -= step + decay * theta",
        "theta -= step + lr * decay * theta",
        "kernels -k one_step",
    ),
    "a skipped update is counted": (
        "optim/elementwise.py",
        "bool(scaling[0]):\n            return False",
        "bool(scaling[0]):\n            return True",
        "kernels -k gradscaler",
    ),
    "a plan is never dropped": (
        "optim/elementwise.py",
        "if grads is not None and self._plan.holds(grads, self.state):",
        "if grads is not None:",
        "kernels -k replaced",
    ),
    "every epoch in the same order": (
        "runs/lanes.py",
        "word(self._seeds, ORDER, epoch, places)",
        "word(self._seeds, ORDER, 0, places)",
        "runs -k order_of_its_own",
    ),
    "augmentation that starts anew": (
        "runs/lanes.py",
        "word(self._seeds, AUGMENTATION, update, place)",
        "word(self._seeds, AUGMENTATION, id(self), place)",
        "killed -k goes_on_alone",
    ),
    "lanes without twins": (
        "runs/stacked.py",
        "max(2, -(-self._real // even) * even)",
        "self._real",
        "runs -k neighbours",
    ),
    "an epoch's sums are not saved": (
        "runs/lanes.py",
        '"sums": self._sums[:, lane].tolist(),',
        '"sums": [0.0, 0.0],',
        "killed -k goes_on_alone",
    ),
    "a damaged checkpoint is opened": (
        "runs/shelf.py",
        "if head != _MAGIC + hashlib.sha256(body).hexdigest().encode():",
        "if not head:",
        "killed -k serves",
    ),
    "held-out data are trained on": (
        "tasks/task.py",
        "order[held : held + used]",
        "order[:used]",
        "runs -k held_out",
    ),
    "replays that do not move on": (
        "optim/kernels/program.py",
        "tl.store(counts + 1, made + taken)",
        "tl.store(counts + 1, made)",
        "graphs -k next_row",
    ),
    "a first replay that loads nothing": (
        "optim/kernels/program.py",
        "start = tl.where(made < 0, 0, words)",
        "start = words",
        "graphs -k next_row",
    ),
    "an overflow that counts": (
        "optim/kernels/program.py",
        "taken = tl.where(tl.load(found_inf) == 0, 1, 0)",
        "taken = 1",
        "graphs -k overflow",
    ),
    "rates that are not looked at": (
        "runs/pack.py",
        'end."""\n        self._lanes.verify()\n',
        'end."""\n',
        "what_runs_leave -k frozen",
    ),
    "planned rates in a record": (
        "runs/lanes.py",
        "return used.lr, decay",
        'return group["lr"], decay',
        "what_runs_leave -k applied",
    ),
    "of several results the last counts": (
        "sweeps/ledger.py",
        'self.results.setdefault(value["run"], place)',
        'self.results[value["run"]] = place',
        "sweeps -k several_results",
    ),
    "a checksum that is not compared": (
        "sweeps/lines.py",
        "int(found[1], 16) != crc32(",
        "int(found[1], 16) < 0 != crc32(",
        "damage -k flipped",
    ),
    "a half-written line stays": (
        "sweeps/store.py",
        "self._file.truncate(self._size)",
        "pass",
        "sweeps -k may_not_grow",
    ),
    "claims that claim nothing": (
        "sweeps/claims.py",
        "is_mine = files.lock_byte(self._file(_file_of(run)), _byte(run), held=True)",
        "is_mine = True",
        "sweeps -k claimed",
    ),
    "one alone trains as one alone": (
        "runs/training.py",
        "Stacked if (cells or len(configs) > 1) and can_stack",
        "Stacked if len(configs) > 1 and can_stack",
        "sweeps -k depend_on_packs",
    ),
    "the sign of s": (
        "results/coupling.py",
        "np.log2(measured.decays) - (rates",
        "np.log2(measured.decays) + (rates",
        "results_coupling -k torch",
    ),
}


@pytest.mark.parametrize(("file", "right", "wrong", "tests"), MUTANTS.values(), ids=MUTANTS)
def test_a_wrong_formula_is_noticed(
    file: str, right: str, wrong: str, tests: str, tmp_path: Path
) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src")
    mutated = tmp_path / "src" / "weightdecay" / file
    text = mutated.read_text(encoding="utf-8")
    assert text.count(right) == 1, "the line that is to be changed is not there any more"
    mutated.write_text(text.replace(right, wrong), encoding="utf-8")
    name, *selected = tests.split()
    options = ["-n0", "-x", "-q", "-p", "no:cacheprovider", f"tests/test_{name}.py", *selected]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    nothing_ran = run.returncode == 0 and " passed" not in run.stdout
    if nothing_ran and "it is not installed" in run.stdout:
        pytest.skip("the package that would notice is not installed")
    assert run.returncode == 1, run.stdout[-2000:] + run.stderr[-2000:]
    assert "1 failed" in run.stdout
