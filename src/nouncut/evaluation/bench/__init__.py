"""The benchmark behind ``nouncut bench``: resumable, every stage kept.

Data sets are encoded into the feature store; the choice of nouns and every result are files of
their own in the output folder.
"""

from nouncut.evaluation.bench.run import (
    Benchmark,
    Plan,
    StageTimes,
    check_torch,
    open_workshop,
    run_benchmark,
)
from nouncut.evaluation.bench.subject import Subject, Workshop, filter_templates
from nouncut.evaluation.bench.writing import (
    benchmark_markdown,
    setting,
    times_markdown,
    write_benchmark,
)

__all__ = [
    "Benchmark",
    "Plan",
    "StageTimes",
    "Subject",
    "Workshop",
    "benchmark_markdown",
    "check_torch",
    "filter_templates",
    "open_workshop",
    "run_benchmark",
    "setting",
    "times_markdown",
    "write_benchmark",
]
