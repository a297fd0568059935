"""Tables as Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from nouncut.paper.published import METRICS
from nouncut.paper.tables.score_table import Cell, Table, TableRow
from nouncut.paper.tables.significance import MIN_DATASETS, compare_methods

_ABSENT = "-"
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    **{character: "\\" + character for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


def markdown(table: Table) -> str:
    """Return a table as Markdown."""
    header = ["method", *map(_escape_markdown, _column_titles(table)), "s per run"]
    body = []
    for section, row in _with_sections(table):
        if section:
            body.append([f"*{_escape_markdown(section)}*", *[""] * (len(header) - 1)])
        title = _escape_markdown(row.row.title) + ("" if row.row.method else " (published only)")
        body.append([title, *_row_texts(table, row, "**{}**"), _seconds(row)])
    return "\n".join([*_heading(table), markdown_rows(header, body), *_remarks(table)]) + "\n"


def markdown_rows(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of text as a Markdown table."""
    lines = [_markdown_line(header), "|" + "---|" * len(header), *map(_markdown_line, rows)]
    return "\n".join(lines)


def latex(table: Table) -> str:
    """Return a table as LaTeX, for the package booktabs."""
    titles = _column_titles(table)
    lines = [
        r"\begin{table}",
        rf"\caption{{{_escape_latex(table.layout.caption)} Model: {_escape_latex(table.model)}.}}",
        rf"\begin{{tabular}}{{l{'r' * len(titles)}}}",
        r"\toprule",
        " & ".join(["Method", *map(_escape_latex, titles)]) + r" \\",
        r"\midrule",
    ]
    for section, row in _with_sections(table):
        if section:
            lines.append(rf"\multicolumn{{{len(titles) + 1}}}{{l}}{{{_escape_latex(section)}}} \\")
        mark = "" if row.row.method else r"$^{\dagger}$"
        values = _row_texts(table, row, r"\textbf{{{}}}", plus_minus=r"$\pm$")
        lines.append(" & ".join([_escape_latex(row.row.title) + mark, *values]) + r" \\")
    note = (
        rf"$^{{\dagger}}$ Published values only ({_escape_latex(table.backbone)} or from pixels)."
    )
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", note, r"\end{table}"]) + "\n"


def records(table: Table) -> list[dict[str, Any]]:
    """Return a table as one record per cell."""
    return [
        {
            "table": table.layout.name,
            "model": table.model,
            "section": row.row.section,
            "title": row.row.title,
            "method": row.row.method,
            "vocabulary": row.row.vocabulary,
            "dataset": dataset,
            "metric": metric,
            "mean": cell.mean,
            "deviation": cell.deviation,
            "seeds": len(cell.measured),
            "published": cell.published,
            "published_model": None if cell.published is None else table.backbone,
            "seconds": row.seconds,
        }
        for row in table.rows
        for (dataset, metric), cell in row.cells.items()
    ]


def csv_text(rows: Sequence[dict[str, Any]]) -> str:
    """Return records as CSV."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _heading(table: Table) -> list[str]:
    seeds = {len(cell.measured) for row in table.rows for cell in row.cells.values()} - {0}
    over = f", {'one seed' if max(seeds) == 1 else f'mean of {max(seeds)} seeds'}" if seeds else ""
    return [f"**{table.layout.caption}** Model {_escape_markdown(table.model)}{over}.", ""]


def _remarks(table: Table) -> Iterator[str]:
    if any(table.has_published(column.title) for column in table.columns):
        yield ""
        yield (
            f"Published: the paper's values ({table.backbone}), not measured here. Rows marked "
            '"published only" are methods that learn from pixels, or are not run here.'
        )
    # The table of tests says it better.
    found = compare_methods(table) if table.layout.name != "wilcoxon" else []
    if found:
        yield ""
        n_datasets = max(one.n_datasets for one in found)
        if n_datasets < MIN_DATASETS:
            yield (
                f"Wilcoxon's signed-rank test over {n_datasets} data sets cannot give p < 0.05; it "
                f"takes {MIN_DATASETS}."
            )
        else:
            tests = "; ".join(f"{_escape_markdown(one.title)} {one.p_value:.4f}" for one in found)
            yield (
                f"Wilcoxon's signed-rank test of ours against others over {n_datasets} data sets "
                f"(NMI, two-sided p): {tests}."
            )


def _column_titles(table: Table) -> list[str]:
    return [
        title
        for column in table.columns
        for metric in METRICS
        for title in [
            f"{column.title} {metric}",
            *["published"] * table.has_published(column.title),
        ]
    ]


def _row_texts(table: Table, row: TableRow, bold: str, plus_minus: str = "±") -> list[str]:
    texts = []
    for title in (column.title for column in table.columns):
        for metric in METRICS:
            cell = row.cells[title, metric]
            text = _measured(cell, plus_minus)
            texts.append(bold.format(text) if _is_best(table, title, metric, cell) else text)
            if table.has_published(title):
                texts.append(_ABSENT if cell.published is None else f"{cell.published:.1f}")
    return texts


def _is_best(table: Table, title: str, metric: str, cell: Cell) -> bool:
    means = [row.cells[title, metric].mean for row in table.rows]
    known = [round(mean, 1) for mean in means if mean is not None]
    return cell.mean is not None and len(known) > 1 and round(cell.mean, 1) == max(known)


def _measured(cell: Cell, plus_minus: str) -> str:
    if cell.mean is None:
        return _ABSENT
    more = "" if cell.deviation is None else f" {plus_minus} {cell.deviation:.1f}"
    return f"{cell.mean:.1f}{more}"


def _seconds(row: TableRow) -> str:
    return _ABSENT if row.seconds is None else f"{row.seconds:.2g}"


def _with_sections(table: Table) -> Iterator[tuple[str, TableRow]]:
    """Yield rows, with the section's heading beside its first row."""
    before = ""
    for row in table.rows:
        yield (row.row.section if row.row.section != before else ""), row
        before = row.row.section


def _markdown_line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(text.replace("|", r"\|") for text in texts) + " |"


def _escape_markdown(text: str) -> str:
    """Escape text for Markdown and HTML: names of folders are untrusted."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("*", r"\*")


def _escape_latex(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(character, character) for character in text)
