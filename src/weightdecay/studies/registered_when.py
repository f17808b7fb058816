"""When settings were registered, in words."""

from collections.abc import Iterable, Iterator

from weightdecay.studies.registration import Registration


def when(registration: Registration) -> str:
    """Return when settings were registered, and that their seeds were trained after that."""
    if registration.earlier:
        return " ".join(_twice(registration))
    return (
        f"Settings were registered on {registration.date} ({_identified(registration)}), before "
        f"the {len(registration.judges)} seeds that judge them were trained."
    )


def short(commits: str) -> str:
    """Return the beginning of each commit, with "+" if files differed from it."""
    each = commits.split(" + ")  # a resumed run has several
    return " + ".join(f"{commit[:12]}{'+' * commit.endswith('+')}" for commit in each)


def _identified(registration: Registration) -> str:
    """Return the commit of a registration and, if it has one, the beginning of its hash."""
    told = f"commit {short(registration.commit)}"
    return f"{told}, sha256 {registration.sha256[:12]}" if registration.sha256 else told


def _twice(registration: Registration) -> Iterator[str]:
    """Yield what was registered first, and what was added when it was stated again."""
    earlier, methods = registration.earlier, registration.methods
    for one in earlier:
        yield (
            f"These settings were registered in {one.file} ({one.date}, commit "
            f"{short(one.commit)}), before their seeds were trained: {_listed(one.methods)}."
        )
    yield (
        f"Later, registered.toml ({registration.date}, {_identified(registration)}) stated them "
        f"again, for the same {len(registration.judges)} seeds."
    )
    there = {name for one in earlier for name in one.methods}
    if new := [name for name in methods if name not in there]:
        yield f"It added these settings, before their seeds were trained: {_listed(new)}."
    carried = {name for one in earlier for name in one.carried}
    more = [name for name, one in methods.items() if name not in carried and any(one.carried())]
    if more and registration.carriers:
        yield f"It added decays to be carried, before they were trained: {_listed(more)}."
    compared = {pair for one in earlier for pair in one.compared}
    late = [
        f"{one} − {other}"
        for one, other in registration.compared
        if {one, other} <= there and frozenset((one, other)) not in compared
    ]
    if late:
        yield f"It added these comparisons, of seeds that were trained already: {_listed(late)}."


def _listed(names: Iterable[str]) -> str:
    return "; ".join(names)
