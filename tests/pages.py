"""Pages taken apart: the data inside, and the text that people read."""

import json
import re
from html import unescape
from typing import Any


def embedded_in(page: str) -> dict[str, Any]:
    """Return what a page's scripts are given."""
    [text] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    data: dict[str, Any] = json.loads(text)
    return data


def bare(page: str) -> str:
    """Return the page without what is in its scripts."""
    return re.sub(r"(<script[^>]*>).*?</script>", r"\1</script>", page, flags=re.DOTALL)


def text_of(page: str) -> str:
    """Return the text of the page's body, without its scripts."""
    body = bare(page)[page.index("<body>") :]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())
