"""Embed SVG pictures in a page without clashes between their names and styles.

matplotlib numbers the parts of every figure from 1 and styles them with a rule for all elements.
Two figures in one page would share letters, and their style would apply to the whole page.
"""

import re
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
    for metadata in root.findall("{*}metadata"):
        root.remove(metadata)
    for element in root.iter():
        # In a page, SVG needs no namespaces, and their addresses look like links.
        element.tag = _local(element.tag)
        owned = {_local(name): _owned(_local(name), value, key) for name, value in element.items()}
        element.attrib.clear()
        element.attrib.update(owned)
        if element.tag == "style" and element.text:
            element.text = element.text.replace("*{", f"#{key} *{{")
    root.attrib.pop("height", None)  # it follows from the width
    root.attrib.update(
        {
            "id": key,
            "role": "img",
            "aria-label": label,
            "aria-describedby": f"{key}-caption",
            "style": f"--width: {root.get('width', '100%')}",
        }
    )
    return ElementTree.tostring(root, encoding="unicode").strip()


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
