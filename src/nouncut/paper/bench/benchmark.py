"""The benchmark: every row of a table on every data set; kept results are not computed again."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nouncut.compute.progress import Progress, silent
from nouncut.compute.threads import count_threads
from nouncut.paper.baselines.methods import METHODS, Method
from nouncut.paper.baselines.problem import Problem
from nouncut.paper.bench.encoded_dataset import EncodedDataset
from nouncut.paper.bench.output_folder import ResultFolder
from nouncut.paper.bench.setup import BenchSetup, load_setup
from nouncut.paper.bench.stage_times import STAGES, stage_seconds
from nouncut.paper.datasets.catalog import load_dataset
from nouncut.paper.datasets.dataset import Dataset
from nouncut.paper.optional_packages import require_package
from nouncut.paper.scores import Result, clustering_scores
from nouncut.paper.tables.paper_tables import Layout, Row
from nouncut.paper.tables.score_table import Table, build_table


@dataclass(frozen=True)
class Plan:
    """The table, data sets and models of a benchmark, and where its results are kept."""

    layout: Layout
    data: tuple[str, ...]
    models: tuple[str, ...]
    output: Path
    data_root: Path | None = None
    seeds: int = 5
    vocabulary: Path | None = None
    quick_nouns: bool = False
    again: bool = False


@dataclass(frozen=True)
class StageTimes:
    """Mean seconds of our method's stages on one data set."""

    dataset: str
    model: str
    n_images: int
    n_clusters: int
    seconds: Mapping[str, float]


@dataclass
class Benchmark:
    """What a benchmark found."""

    tables: list[Table] = field(default_factory=list)
    times: list[StageTimes] = field(default_factory=list)
    n_computed: int = 0
    n_kept: int = 0
    notes: list[str] = field(default_factory=list)


def run_benchmark(plan: Plan, progress: Progress = silent) -> Benchmark:
    """Run a benchmark, or the rest of it."""
    _check_torch(plan.layout)
    # Before a model is loaded: missing files are common, and loading takes time.
    datasets = [load_dataset(data, plan.data_root) for data in plan.data]
    found = Benchmark()
    for model in plan.models:
        setup = load_setup(
            model,
            plan.output,
            vocabulary=plan.vocabulary,
            quick_nouns=plan.quick_nouns,
            progress=progress,
        )
        if plan.layout.name == "time":
            found.times.extend(measure_times(plan, datasets, setup))
        else:
            found.tables.append(fill_table(plan, datasets, setup, found))
    return found


def _check_torch(layout: Layout) -> None:
    for row in layout.rows:
        if row.method and METHODS[row.method].needs_torch:
            require_package("torch", f"Training {row.method}", "Or leave it out of `methods`.")


def fill_table(plan: Plan, datasets: list[Dataset], setup: BenchSetup, found: Benchmark) -> Table:
    """Fill a table; `found` counts the results and collects notes."""
    measured: dict[tuple[str, Row], list[Result]] = {}
    for dataset in datasets:
        encoded = EncodedDataset(dataset, setup)
        if encoded.n_skipped:
            found.notes.append(f"{encoded.name}: {encoded.n_skipped} images cannot be opened.")
        for row, result, is_new in _run_rows(plan, encoded):
            measured.setdefault((encoded.name, row), []).append(result)
            found.n_computed += is_new
            found.n_kept += not is_new
    return build_table(plan.layout, setup.model, [dataset.name for dataset in datasets], measured)


class _Run(NamedTuple):
    """A row to compute for a seed, and the facts that decide the result."""

    row: Row
    method: Method
    seed: int
    facts: Mapping[str, Any]


def _run_rows(plan: Plan, encoded: EncodedDataset) -> Iterator[tuple[Row, Result, bool]]:
    """Yield every row's result for every seed, and whether it was computed now."""
    results, progress = encoded.setup.results, encoded.setup.progress
    rows = [(row, METHODS[row.method]) for row in plan.layout.rows if row.method]
    with_gradnorm = any("gradnorm" in method.name for _, method in rows)
    with_train = any(method.needs_torch for _, method in rows)

    # A table has at most two vocabularies; problems of earlier seeds are not needed any more.
    @lru_cache(maxsize=2)
    def problem_of(seed: int, vocabulary: Any) -> Problem:
        return encoded.problem(seed, vocabulary, with_gradnorm=with_gradnorm, with_train=with_train)

    done = count(1)
    for seed in range(plan.seeds):
        runs = []
        for row, method in rows:
            facts = encoded.result_facts(method.name, seed, row.vocabulary)
            kept = None if plan.again else results.read(facts)
            if kept is None:
                runs.append(_Run(row, method, seed, facts))
            else:
                progress(f"methods on {encoded.name}", next(done), plan.seeds * len(rows))
                yield row, Result(**kept), False
        problems = [problem_of(run.seed, run.row.vocabulary) for run in runs]
        for row, result in _compute(runs, problems, encoded.labels, results):
            progress(f"methods on {encoded.name}", next(done), plan.seeds * len(rows))
            yield row, result, True


def _compute(
    runs: list[_Run], problems: list[Problem], labels: NDArray[np.intp], results: ResultFolder
) -> Iterator[tuple[Row, Result]]:
    """Compute rows, and yield each as soon as it is there."""
    # A head trains on one core, so several train side by side; other methods use all cores.
    for is_trained, n_jobs in ((False, 1), (True, count_threads(-1))):
        own = [
            (run, problem)
            for run, problem in zip(runs, problems, strict=True)
            if run.method.needs_torch is is_trained
        ]
        tasks = [delayed(_run_once)(run, problem, labels, results) for run, problem in own]
        computed = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        yield from zip((run.row for run, _ in own), computed, strict=True)


def _run_once(
    run: _Run, problem: Problem, labels: NDArray[np.intp], results: ResultFolder
) -> Result:
    if run.method.needs_torch:
        # Not in the measured time: the import takes longer than some methods.
        import_module("torch")
    start = time.perf_counter()
    found = run.method.fit_predict(problem, run.seed)
    seconds = time.perf_counter() - start
    result = Result(*clustering_scores(labels, found), seconds=seconds)
    results.write(run.facts, result._asdict())
    return result


def measure_times(plan: Plan, datasets: list[Dataset], setup: BenchSetup) -> Iterator[StageTimes]:
    """Measure the stages of our method on every data set."""
    for dataset in datasets:
        encoded = EncodedDataset(dataset, setup)
        runs = [
            setup.results.read_or_compute(
                encoded.result_facts("time", seed), partial(_time_stages, encoded, seed), plan.again
            )
            for seed in range(plan.seeds)
        ]
        means = {stage: float(np.mean([run[stage] for run in runs])) for stage in STAGES}
        yield StageTimes(encoded.name, setup.model, len(encoded.labels), encoded.n_clusters, means)


def _time_stages(encoded: EncodedDataset, seed: int) -> dict[str, float]:
    return stage_seconds(encoded.problem(seed), seed)
