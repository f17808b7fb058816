"""What to do with the decay when the learning rate changes: a rule λ ∝ α^(−s).

Transfer regret decides (`transfer`): what each rule costs in test error. Of the rules that cost the
same up to noise, the simplest is recommended. If there are too few seeds for that, the interval of
the coupling exponent decides. It is that of `coupling` or, if too few learning rates have several
seeds, that of the fitted surface (`fit`), which is wider. If `coupling` withholds a value, because
its estimates contradict each other, there is none.
"""

from dataclasses import dataclass, field, replace

from weightdecay.results.choosing import best_columns
from weightdecay.results.exponent import Exponent
from weightdecay.results.fit import Surface
from weightdecay.results.landscape import Landscape
from weightdecay.results.transfer import CONVENTIONS, RULES, TransferRegret, measure_transfer


@dataclass(frozen=True)
class Knobs:
    """Which rule carries a decay to another learning rate, by its regret or by the exponent.

    `fitted` says that the exponent comes from the fitted surface. `possible` are the rules inside
    its interval. `bent` says that there is no exponent because the ridge has a knee. If fresh seeds
    found the regret, `swept` is what the sweep's own runs say, also of rules that no seed judged.
    """

    exponent: Exponent
    fitted: bool
    regret: TransferRegret = field(default_factory=TransferRegret)
    bent: bool = False
    swept: TransferRegret | None = None

    def judged(self, fresh: TransferRegret) -> "Knobs":
        """Return it with the costs that fresh seeds have measured."""
        return replace(self, regret=fresh, swept=self.regret)

    @property
    def possible(self) -> tuple[float, ...]:
        """Return the rules inside the interval of the exponent; all if it is unknown."""
        if self.exponent.value is None:
            return RULES
        return tuple(one for one in RULES if self.exponent.low <= one <= self.exponent.high)

    @property
    def excluded(self) -> tuple[float, ...]:
        """Return the rules that the interval excludes."""
        return tuple(rule for rule in RULES if rule not in self.possible)

    @property
    def tied(self) -> tuple[float, ...]:
        """Return the rules between which nothing decides: by their regret, or by the exponent."""
        return self.regret.tied if self.by_regret else self._by_exponent

    @property
    def left_open(self) -> tuple[float, ...]:
        """Return the rules inside the exponent's interval, less those that surely cost more."""
        return tuple(one for one in self._by_exponent if one in self.possible)

    @property
    def rule(self) -> float | None:
        """Return the rule to use; None if the regret is uncertain and the exponent leaves it open.

        If no rule is inside the exponent's interval, it is the nearest. Of tied rules of which none
        is a convention's, it is the cheapest that the exponent does not exclude, if there is one;
        fresh seeds need no such help.
        """
        if self.by_regret:
            found = self.regret
            likely = {*found.tied}.intersection(self.possible).difference(found.beyond)
            if found.fresh or not likely or found.rule in CONVENTIONS:
                return found.rule
            return min(likely, key=lambda one: found.costs[one].value)
        if self.exponent.bound is not None or len(self.tied) != 1:
            return None
        return self.tied[0]

    @property
    def by_regret(self) -> bool:
        """Whether the regret decides: its costs have intervals, and it leaves nothing untried.

        A second stage does not train every rule, and in a finished sweep some lead beyond the
        trained decays. If each rule whose cost is known costs something, and the exponent points to
        others alone that may cost less, the exponent decides.
        """
        found = self.regret
        inside = found.costs.keys() - {*found.beyond}
        free = any(found.costs[one].low <= 0 for one in inside.intersection(found.tied))
        pointed = {*self._by_exponent}
        known = self.exponent.value is None or pointed & inside or pointed <= {*found.dearer}
        return bool(found.tied) and bool(known or free)

    @property
    def decided(self) -> bool:
        """Whether one rule is left."""
        return self.rule is not None and len(self.tied) == 1

    @property
    def contradicted(self) -> bool:
        """Whether the exponent speaks against every rule that costs least."""
        if not self.by_regret or self.exponent.value is None:
            return False
        return not {*self.regret.tied}.intersection(self._by_exponent)

    @property
    def tried(self) -> bool:
        """Whether the cost of a rule that the exponent points to is known."""
        return not self.regret.costs.keys().isdisjoint(self._by_exponent)

    @property
    def _by_exponent(self) -> tuple[float, ...]:
        """Return the rules inside the exponent's interval, or else the nearest.

        Those that surely cost more than another are left out, unless all do.
        """
        value, pointed = self.exponent.value, self.possible
        if not pointed and value is not None:
            pointed = (min(RULES, key=lambda one: abs(one - value)),)
        return tuple(one for one in pointed if one not in self.regret.dearer) or pointed


#: So many learning rates must have their best decay between others for a surface to have an s.
_RIDGE = 2


def _has_ridge(landscape: Landscape) -> bool:
    """Whether a surface shows how the best decay moves, rather than only where errors are high.

    On a small grid in torch's decay, whose columns are shifted against each other, the best decays
    of most learning rates may lie at an edge.
    """
    return sum(column.inside for column in best_columns(landscape).values()) >= _RIDGE


def knobs(landscape: Landscape, found: Surface, measured: Exponent, *, bent: bool = False) -> Knobs:
    """Measure what the rules cost, and take the measured exponent, or on a grid the surface's.

    If both are unknown, the measured one says why: a surface does not see that the best decay may
    lie beyond the grid.
    """
    read_off = found.exponent()
    fitted = measured.value is None and not measured.withheld and landscape.in_columns
    fitted = fitted and read_off.value is not None and _has_ridge(landscape)
    return Knobs(read_off if fitted else measured, fitted, measure_transfer(landscape), bent)
