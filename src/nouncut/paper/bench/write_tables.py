"""The tables of a benchmark as Markdown, LaTeX, CSV and JSON files."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nouncut import __version__
from nouncut.paper.bench.benchmark import Benchmark, StageTimes
from nouncut.paper.bench.output_folder import file_stem, write_file
from nouncut.paper.bench.stage_times import PUBLISHED_SECONDS, STAGES
from nouncut.paper.tables.table_text import csv_text, latex, markdown, markdown_rows, records


def describe_run(command: str) -> dict[str, Any]:
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
    return markdown_rows(header, rows) + "\n"


def write_benchmark(found: Benchmark, about: dict[str, Any], folder: Path) -> list[Path]:
    """Write a benchmark's tables; return the files."""
    written = []
    for table in found.tables:
        stem = folder / f"{table.layout.name}-{file_stem(table.model)}"
        text = benchmark_markdown(Benchmark([table], notes=found.notes), about)
        extra = {"tex": latex(table)}
        written += _write_formats(stem, {"md": text} | extra, records(table), about)
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
        written += _write_formats(folder / "time", {"md": text}, rows, about)
    return written


def _write_formats(
    stem: Path, texts: dict[str, str], rows: list[dict[str, Any]], about: dict[str, Any]
) -> list[Path]:
    texts = texts | {
        "csv": csv_text(rows),
        "json": json.dumps({"about": about, "rows": rows}, indent=2) + "\n",
    }
    paths = {suffix: stem.with_name(f"{stem.name}.{suffix}") for suffix in texts}
    for suffix, text in texts.items():
        write_file(paths[suffix], text.encode("utf-8", "backslashreplace"))
    return list(paths.values())
