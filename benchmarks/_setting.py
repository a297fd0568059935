"""What every benchmark says about itself: the machine, the date, the versions."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any


def setting(*packages: str) -> dict[str, Any]:
    """Return where and when a benchmark ran, and with which versions."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "machine": f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "versions": {name: version(name) for name in ("nouncut", "numpy", *packages)},
    }


def print_table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows as a Markdown table."""
    columns = list(rows[0])
    print(f"\n{title}\n\n| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(_shown(row[column]) for column in columns) + " |", flush=True)


def print_result(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a whole result: JSON, or its setting and every list of rows as a table."""
    if as_json:
        print(json.dumps(result, indent=2))
        return
    print(f"{result['date']}, {result['machine']}, {result['versions']}")
    for title, rows in result.items():
        if isinstance(rows, list):
            print_table(title, rows)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            names = [
                line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
            ]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()
