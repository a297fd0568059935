"""The tables of a benchmark as Markdown, LaTeX, CSV and JSON files."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nouncut import __version__
from nouncut.paper.bench.benchmark import Benchmark, StageTimes
from nouncut.paper.bench.output_folder import file_stem, write_file
from nouncut.paper.bench.stage_times import PUBLISHED_SECONDS, STAGES
from nouncut.paper.tables.significance import Significance
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
    if found.significance:
        parts.append(significance_markdown(found.significance))
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
    remark = (
        "Eigenvectors: those of the diffused affinity; the ones that diffusion needs count there. "
        "The paper's last stage, spectral clustering, is eigenvectors and labels together."
    )
    return f"{markdown_rows(header, rows)}\n\n{remark}\n"


def significance_markdown(significance: Mapping[str, Sequence[Significance]]) -> str:
    """Return the p-values of our method against others as Markdown."""
    measured = [model for model in significance if model]
    header = ["ours against", "p, printed", "p, from the paper's NMI"]
    header += [f"p, measured ({model})" for model in measured]
    rows = []
    for same_method in zip(*significance.values(), strict=True):
        first = same_method[0]
        row = [first.title, _p_value(first.printed), _p_value(first.from_published)]
        rows.append(row + [_p_value(one.measured) for one in same_method[: len(measured)]])
    n_measured = {one.n_measured for tests in significance.values() for one in tests} - {0}
    remark = "Wilcoxon's signed-rank test of NMI, two-sided; the paper's NMI is of 8 data sets"
    remark += f", measured of {max(n_measured)}." if n_measured else ". Nothing is measured here."
    return f"{markdown_rows(header, rows)}\n\n{remark}\n"


def _p_value(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


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
    if found.significance:
        rows = [
            {"model": model or None, **one._asdict()}
            for model, tests in found.significance.items()
            for one in tests
        ]
        text = benchmark_markdown(Benchmark(significance=found.significance), about)
        written += _write_formats(folder / "p-values", {"md": text}, rows, about)
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
