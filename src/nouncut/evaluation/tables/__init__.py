"""The paper's tables: which rows and columns they have, their numbers, and how they are written."""

from nouncut.evaluation.tables._base import (
    AVERAGE,
    METRICS,
    Cell,
    Measured,
    Table,
    TableRow,
    build_table,
    find_backbone,
)
from nouncut.evaluation.tables.layouts import (
    Layout,
    Row,
    TableName,
    keep_methods,
    method_layout,
    table_layout,
)
from nouncut.evaluation.tables.significance import Comparison, compare_methods, signed_rank
from nouncut.evaluation.tables.text import csv_text, latex, markdown, plain_markdown, records

__all__ = [
    "AVERAGE",
    "METRICS",
    "Cell",
    "Comparison",
    "Layout",
    "Measured",
    "Row",
    "Table",
    "TableName",
    "TableRow",
    "build_table",
    "compare_methods",
    "csv_text",
    "find_backbone",
    "keep_methods",
    "latex",
    "markdown",
    "method_layout",
    "plain_markdown",
    "records",
    "signed_rank",
    "table_layout",
]
