"""The options `--json` and `--quiet`, and JSON output."""

import argparse
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightdecay.cli.printing import echo


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add `--json` and `--quiet`. Every command that prints results has them."""
    parser.add_argument(
        "--json", action="store_true", help="print the results as JSON: see docs/json.md"
    )
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="print only results and failures, no progress or advice",
    )


def print_json(values: Mapping[str, Any]) -> None:
    """Print values as JSON on stdout. Numbers that are not finite become null."""
    echo(json.dumps(_plain(values), allow_nan=False, indent=2))


def _plain(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case Path():
            return str(value)
        case Mapping():
            return {key: _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
    return value
