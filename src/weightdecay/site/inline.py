"""Embed SVG pictures in a page without clashes between their names and styles.

matplotlib numbers the parts of every figure from 1 and styles them with a rule for all elements.
Two figures in one page would share letters, and their style would apply to the whole page, if its
policy let it. Its declarations go to the picture's root, which its parts inherit from.
"""

import re
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree


def inline(svg: str, *, key: str, label: str) -> str:
    """Return an SVG document as an element of a page, with `key` before all of its names.

    `label` is the text for screen readers; the element `key`-caption describes the picture.
    """
    try:
        root = ElementTree.fromstring(svg)  # noqa: S314 - a figure of ours
    except ElementTree.ParseError as error:
        raise ValueError(
            f"`svg` must be an SVG document, got {svg[:40]!r} in {label!r}, where {error}. "
            "weightdecay.figures.save writes one."
        ) from None
    declared = [one.text or "" for one in root.iter() if _local(one.tag) == "style"]
    for parent in [*root.iter()]:
        for part in [*parent]:
            if _local(part.tag) in ("metadata", "style"):
                parent.remove(part)
    for element in root.iter():
        # In a page, SVG needs no namespaces, and their addresses look like links.
        element.tag = _local(element.tag)
        owned = {_local(name): _owned(_local(name), value, key) for name, value in element.items()}
        element.attrib.clear()
        element.attrib.update(owned)
    root.attrib.pop("height", None)  # it follows from the width
    root.attrib.update(
        {
            "id": key,
            "role": "img",
            "aria-label": label,
            "aria-describedby": f"{key}-caption",
            "style": "; ".join([f"--width: {root.get('width', '100%')}", *_inherited(declared)]),
        }
    )
    return ElementTree.tostring(root, encoding="unicode").strip()


def _inherited(declared: Iterable[str]) -> Iterator[str]:
    """Yield the declarations of rules for all elements."""
    for style in declared:
        for found in re.findall(r"\*\s*{([^}]*)}", style):
            yield found.strip().rstrip(";")


def _owned(name: str, value: str, key: str) -> str:
    """Return an attribute's value with the key before every name of the picture."""
    if name == "id":
        return f"{key}-{value}"
    if name != "href":
        return re.sub(r"""url\((["']?)#""", rf"url(\1#{key}-", value)
    if not value.startswith(("#", "data:image/")):
        raise ValueError(
            f"`svg` must refer to nothing outside itself, got {value!r}. Embed that as data."
        )
    return re.sub("^#", f"#{key}-", value)


def _local(name: str) -> str:
    return name.rpartition("}")[2]
