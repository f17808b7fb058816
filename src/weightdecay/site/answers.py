"""What a page says first: which setting to use, and whether one knob may change alone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape

from weightdecay.colours import OUTCOMES
from weightdecay.labels import AXES
from weightdecay.number_format import joined, noun, reported
from weightdecay.results import Estimate, Recommendation
from weightdecay.site import advice, plain_rules, rules
from weightdecay.site.page_data import used
from weightdecay.site.page_landscape import PageLandscape
from weightdecay.site.parts import text
from weightdecay.table import shown

#: What every page asks.
QUESTION = (
    "Which learning rate α, which weight decay, and may you change α and leave the decay as it is?"
)
# Which outcome of a claim has the colour and the shape of an answer.
_ANSWERS = {
    "yes": "held",
    "no": "not held",
    "at a cost": "not held",
    "not decided": "not decided",
}
# With more landscapes, a sentence about all of them is too long.
_SUMMED = 6
# In these settings landscapes may differ, and their errors can be compared all the same.
_ALIKE = ("task", "model", "data", "epochs", "batch")


def answers(found: Sequence[PageLandscape], top: Sequence[str] = ()) -> str:
    """Return one card per landscape, and sentences about all of them, as HTML.

    They begin with the sentences of `top`.
    """
    cards = "".join(_card(one, at) for at, one in enumerate(found) if one.answered)
    lines = [*map(text, top), *map(escape, summary(found))]
    said = "".join(f"<p>{line}</p>\n" for line in lines)
    summed = f'<div class="summary">\n{said}</div>\n' if said else ""
    if not cards:
        return summed
    about = f'<p class="hint">{escape(trained)}</p>\n' if (trained := _trained(found)) else ""
    return (
        f'{summed}{about}<section id="answers" aria-label="What to use">\n{cards}</section>\n'
        f'<p class="hint" id="about-answers">{escape(_meaning(found))}</p>\n'
    )


def _trained(found: Sequence[PageLandscape]) -> str:
    """Return what all landscapes were trained on and with, if they are runs of ours."""
    configs = [one.landscape.run_config for one in found]
    known = [one for one in configs if one is not None]
    if len(known) < len(configs):
        return ""
    shared = {
        name: str(getattr(known[0], name))
        for name in ("task", "model", "epochs", "batch")
        if len({getattr(one, name) for one in known}) == 1
    }
    words = {"task": "on {}", "model": "with {}", "epochs": "{} epochs", "batch": "batch size {}"}
    told = ", ".join(words[name].format(value) for name, value in shared.items())
    told = told.replace(", with", " with", 1)
    return f"Trained {told}." if told else ""


def _meaning(found: Sequence[PageLandscape]) -> str:
    """Return what the small numbers are, and how settings were judged."""
    shown_ones = [one for one in found if one.answered]
    what = noun(one.landscape for one in shown_ones)
    told = []
    if any(one.judged is None and one.landscape.in_columns for one in shown_ones):
        told.append(
            f"“Nearly as good”: the {what} is at most 2 % above the lowest, relative to it, if the "
            "other of α and λ is left as it is."
        )
    fresh = {one.judged.seeds for one in shown_ones if one.judged is not None}
    if fresh:
        seeds = " or ".join(map(str, sorted(fresh)))
        told.append(
            f"Each setting was chosen on validation examples, and its {what} measured by {seeds} "
            "other seeds."
        )
    if any(not one.landscape.in_columns for one in shown_ones):
        told.append(f"The small numbers under scattered settings: {advice.PROBABLY}.")
    if any(one.advice is not None and one.advice.knobs.regret.costs for one in shown_ones):
        told.append(
            f"Rises are above the {what} with the λ that is best at the new α, and are means over "
            "an α 4 times as large and as small, if nothing else is said."
        )
    return " ".join(
        [
            *told,
            "The small numbers under what is measured are 95 % intervals.",
        ]
    )


def summary(found: Sequence[PageLandscape]) -> list[str]:
    """Return in a few sentences which landscape is best, and which let α change alone."""
    known = [(one, one.advice) for one in found if one.answered and one.advice is not None]
    if not 2 <= len(known) <= _SUMMED:
        return []
    names = _shortened([one.title for one, _ in known])
    short = [(replace(one, title=name), own) for (one, own), name in zip(known, names, strict=True)]
    return [*_lowest(short), *_alone(short)]


def _shortened(titles: Sequence[str]) -> list[str]:
    """Return titles without the parts that all of them end with."""
    parts = [title.split(", ") for title in titles]
    while all(len(one) > 1 and one[-1] == parts[0][-1] for one in parts):
        parts = [one[:-1] for one in parts]
    return [", ".join(one) for one in parts]


def _lowest(known: Sequence[tuple[PageLandscape, Recommendation]]) -> Iterator[str]:
    """Yield the lowest error, if all errors are of the same task and budget."""
    configs = [one.landscape.run_config for one, _ in known]
    same = {tuple(getattr(config, name, None) for name in _ALIKE) for config in configs}
    if len(same) > 1 or None in configs:
        return
    best, found = min(known, key=lambda pair: error(*pair).value)
    symbols = ("α", advice.symbol(best.landscape))
    knobs = " and ".join(
        f"{symbol} = {shown(value, 3)}"
        for symbol, value in zip(symbols, setting(best, found), strict=True)
    )
    value, _ = advice.error_words(error(best, found), best.landscape.metric)
    torch = None if best.landscape.way == "l2" else _torch(best, found)
    passed = "" if torch is None else f"; torch's weight_decay is then {shown(torch, 3)}"
    yield f"Lowest {reported([best.landscape])}: {best.title}, {value} with {knobs}{passed}."


def _alone(known: Sequence[tuple[PageLandscape, Recommendation]]) -> Iterator[str]:
    told = {
        word: [one for one, own in known if plain_rules.alone(own)[0] == word] for word in _ANSWERS
    }
    names = {word: joined([one.title for one in own]) for word, own in told.items()}
    called = {rules.decay_of(one.landscape) for one, _ in known}
    decay = called.pop() if len(called) == 1 else "the decay"
    if told["yes"]:
        kept = f"You may change α and leave {decay} as it is with {names['yes']}"
        yield f"{kept}{_divided(told['yes'])}."
    if told["no"] and len(told["no"]) == len(known):
        these = "Neither of these two" if len(known) == 2 else f"None of these {_count(len(known))}"
        yield f"{these} lets you change α alone: change {decay} with it."
        least = plain_rules.least_kept([own for _, own in known])
        if least is not None:
            at, said = least
            yield (
                f"{known[at][0].title} suffers least: if α becomes 4 times as large or small and "
                f"{decay} stays, {said}"
            )
    elif told["no"]:
        yield f"You may not with {names['no']}: change {decay} with α."
    if told["at a cost"]:
        yield (
            f"With {names['at a cost']}, changing α and leaving {decay} costs something, and no "
            "simple rule for both directions costs measurably less."
        )
    if len(told["not decided"]) == len(known):
        yield "These runs do not decide yet whether you may change α alone."
    elif told["not decided"]:
        open_ = names["not decided"]
        yield f"For {open_}, these runs do not decide whether you may change α alone."


def _divided(kept: Sequence[PageLandscape]) -> str:
    """Return what leaving λ means in torch, where decoupled methods have another number."""
    if any(one.landscape.way == "l2" or one.landscape.told_in_torch for one in kept):
        return ""
    return "; in torch, divide weight_decay, which is λ/α, by what α is multiplied by"


def _count(number: int) -> str:
    words = {3: "three", 4: "four", 5: "five", 6: "six"}
    return words[number]


def _card(one: PageLandscape, at: int) -> str:
    """Return a card: the setting to use, its error, and whether α may change alone."""
    head = f'<article class="answer" id="answer-{at}">\n<h2>{escape(one.title)}</h2>\n'
    if one.advice is None:
        return f"{head}<p>{escape(one.why)}</p>\n</article>\n"
    word, done = plain_rules.alone(one.advice)
    outcome = _ANSWERS[word]
    best_run = "<p>The best run: no surface could be fitted.</p>\n" if one.advice.best_run else ""
    ties = _sentence(advice.ties(one.advice), "ties") + _sentence(_beyond(one.advice), "ties")
    small = _sentence(plain_rules.restated(one.advice), "torch")
    return (
        f"{head}<dl>{''.join(_rows(one, one.advice))}</dl>\n{best_run}{ties}"
        f'<p class="alone {outcome.replace(" ", "-")}">'
        f'<span aria-hidden="true">{OUTCOMES[outcome][0]}</span> '
        f"{escape(plain_rules.asked(one.landscape))} "
        f"{word.capitalize()}.</p>\n{_sentence(done, 'done')}{small}"
        f"<details><summary>All numbers</summary>{_lines(one)}</details>\n</article>\n"
    )


def _beyond(found: Recommendation) -> str:
    """Return what to train next if the best may lie beyond the trained settings."""
    if not any(one.edge for one in found.add):
        return ""
    return f"The best may lie beyond these settings. Add {'; '.join(advice.additions(found))}"


def _sentence(said: str, kind: str) -> str:
    """Return a paragraph that begins with a capital and ends with a stop; nothing if empty."""
    if not said:
        return ""
    return f'<p class="{kind}">{escape(said[0].upper() + said[1:].rstrip("."))}.</p>\n'


def _rows(one: PageLandscape, found: Recommendation) -> Iterator[str]:
    scape, judged = one.landscape, one.judged
    names = ("learning rate α", " ".join(AXES[scape.way]))
    if judged is None:
        near = " is nearly as good" if scape.in_columns else ""
        own = {names[0]: found.lr, names[1]: found.decay}
        if scape.told_in_torch:
            own = {names[0]: found.lr, advice.TORCH: advice.own_decay(found)[1], **own}
        for label, knob in own.items():
            ends = f"{shown(knob.low, 3)} to {shown(knob.high, 3)}{near}"
            yield _row(label, shown(knob.value, 3), ends if knob.low < knob.high else "")
    else:
        yield _row(names[0], shown(judged.lr, 3), "")
        yield _row(names[1], shown(judged.decay, 3), "")
    torch = None if scape.told_in_torch else _torch(one, found)
    if torch is not None:
        how = "the same number" if scape.way == "l2" else "which is λ/α"
        yield _row(advice.TORCH, shown(torch, 3), how)
    value, ends = advice.error_words(error(one, found), scape.metric)
    yield _row(reported([scape]), value, ends.strip("[]").replace(", ", " to "))


def setting(one: PageLandscape, found: Recommendation) -> tuple[float, float]:
    """Return the learning rate and the decay to use."""
    if one.judged is not None:
        return one.judged.lr, one.judged.decay
    return found.lr.value, found.decay.value


def _torch(one: PageLandscape, found: Recommendation) -> float | None:
    """Return the setting to use as torch's weight_decay, if it is known."""
    lr, decay = setting(one, found)
    return (
        decay if one.landscape.way == "l2" else one.landscape.stated(lr, decay).torch_weight_decay
    )


def error(one: PageLandscape, found: Recommendation) -> Estimate:
    """Return the error of the setting to use."""
    return found.error if one.judged is None else one.judged.error


def _row(label: str, value: str, more: str) -> str:
    small = f" <small>{escape(more)}</small>" if more else ""
    return f"<div><dt>{escape(label)}</dt><dd>{escape(value)}{small}</dd></div>"


def _lines(one: PageLandscape) -> str:
    assert one.advice is not None
    lines = advice.block(one.advice)
    if one.judged is not None:
        # What the surface would recommend is not what to use.
        lines = [("use", used(one)), ("fitted", lines[0][1]), *lines[1:]]
    return "".join(
        f"<p>{f'<b>{escape(label)}</b> ' if label else ''}{escape(text)}</p>"
        for label, text in lines
    )
