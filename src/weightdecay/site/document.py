"""What every page begins with: its policy, its title and its style."""

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
