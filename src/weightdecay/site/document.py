"""What every page begins with: its policy, its title and its style."""

import base64
import hashlib
from html import escape


def opening(title: str, *, policy: str, style: str) -> str:
    """Return a page up to the start of its body."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
"""


def content_hash(text: str) -> str:
    """Return the hash by which a policy allows a script or a style."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
