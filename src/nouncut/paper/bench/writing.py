"""What a benchmark leaves behind: Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nouncut import __version__
from nouncut.paper.bench.files import slug, write_whole
from nouncut.paper.bench.run import Benchmark, StageTimes
from nouncut.paper.bench.timing import PUBLISHED_SECONDS, STAGES
from nouncut.paper.tables.table import Table
from nouncut.paper.tables.text import csv_text, latex, markdown, plain_markdown, records


def setting(command: str) -> dict[str, Any]:
    """Return when, where and how a benchmark ran."""
    return {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "nouncut": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def benchmark_markdown(found: Benchmark, about: dict[str, Any]) -> str:
    """Return a benchmark's tables as Markdown."""
    line = (
        f"`{about['command'].replace('`', '')}`, {about['date']}, nouncut {about['nouncut']}, "
        f"{about['machine']}."
    )
    parts = [line + "\n", *map(markdown, found.tables)]
    if found.times:
        parts.append(times_markdown(found.times))
    parts.extend(f"{note}\n" for note in found.notes)
    return "\n".join(parts)


def times_markdown(times: Sequence[StageTimes]) -> str:
    """Return the table of times as Markdown."""
    header = ["data set", "model", "images", "clusters", *(f"{stage} (s)" for stage in STAGES)]
    rows = [
        [
            one.dataset,
            one.model,
            f"{one.n_images:,}",
            f"{one.n_clusters:,}",
            *(f"{one.seconds[stage]:.3g}" for stage in STAGES),
        ]
        for one in times
    ]
    published = [f"{PUBLISHED_SECONDS[s]:g}" if s in PUBLISHED_SECONDS else "-" for s in STAGES]
    rows.append(["ImageNet-1K (published, A100)", "ViT-B/32", "50,000", "1,000", *published])
    return plain_markdown(header, rows)


def write_benchmark(found: Benchmark, about: dict[str, Any], folder: Path) -> list[Path]:
    """Write a benchmark's tables."""
    written = []
    for table in found.tables:
        stem = f"{table.layout.name}-{slug(table.model)}"
        alone = Benchmark([table], notes=found.notes)
        written += _write(folder, stem, benchmark_markdown(alone, about), _content(table), about)
    if found.times:
        rows = [
            {
                "dataset": one.dataset,
                "model": one.model,
                "images": one.n_images,
                "clusters": one.n_clusters,
                **one.seconds,
            }
            for one in found.times
        ]
        text = benchmark_markdown(Benchmark(times=found.times), about)
        written += _write(folder, "time", text, {"csv": rows}, about)
    return written


def _content(table: Table) -> dict[str, Any]:
    return {"tex": latex(table), "csv": records(table)}


def _write(
    folder: Path, stem: str, text: str, content: dict[str, Any], about: dict[str, Any]
) -> list[Path]:
    rows = content["csv"]
    texts = {"md": text, **({"tex": content["tex"]} if "tex" in content else {})}
    texts |= {
        "csv": csv_text(rows),
        "json": json.dumps({"about": about, "rows": rows}, indent=2) + "\n",
    }
    paths = []
    for suffix, one in texts.items():
        path = folder / f"{stem}.{suffix}"
        write_whole(path, one.encode("utf-8", "backslashreplace"))
        paths.append(path)
    return paths
