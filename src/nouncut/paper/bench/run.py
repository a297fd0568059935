"""The benchmark: every row of a table on every data set, as far as it is not there yet."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nouncut.compute.progress import Progress, silent
from nouncut.compute.threads import count_threads
from nouncut.errors import ModelError
from nouncut.models.choose import load_encoder
from nouncut.models.encoder import Encoder
from nouncut.paper.baselines.method import Method, Problem
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.bench.results import Result, ResultFolder
from nouncut.paper.bench.subject import Subject, Workshop, filter_templates
from nouncut.paper.bench.timing import STAGES, stage_seconds
from nouncut.paper.datasets.dataset import Dataset
from nouncut.paper.datasets.registry import load_dataset
from nouncut.paper.scores import clustering_scores
from nouncut.paper.tables.layouts import Layout, Row
from nouncut.paper.tables.table import Measured, Table, build_table
from nouncut.store.store import FeatureStore
from nouncut.words.nouns import load_nouns
from nouncut.words.word_lists import read_words


@dataclass(frozen=True)
class Plan:
    """What a benchmark is to do."""

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
    """Seconds of our method's stages on one data set."""

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


def run_benchmark(plan: Plan, progress: Progress | None = None) -> Benchmark:
    """Run a benchmark, or what is left of it."""
    check_torch(plan.layout)
    # Missing files are found before a model is loaded.
    datasets = [load_dataset(data, plan.data_root) for data in plan.data]
    found = Benchmark()
    for model in plan.models:
        workshop = open_workshop(plan, load_encoder(model).encoder, progress)
        if plan.layout.name == "time":
            found.times.extend(_measure_times(plan, datasets, workshop))
        else:
            found.tables.append(_fill_table(plan, datasets, workshop, found))
    return found


def check_torch(layout: Layout) -> None:
    """Refuse a table that cannot be filled without torch where there is none."""
    trained = [row.method for row in layout.rows if row.method and METHODS[row.method].needs_torch]
    if trained and find_spec("torch") is None:
        raise ModelError(
            f'{trained[0]} trains a network and needs torch: pip install "nouncut[bench]". Or '
            "leave it out with --methods."
        )


def open_workshop(plan: Plan, encoder: Encoder, progress: Progress | None = None) -> Workshop:
    """Return what all data sets of a benchmark share."""
    if plan.vocabulary is not None:
        words = read_words(plan.vocabulary)
    else:
        words = [noun.word for noun in load_nouns()]
    return Workshop(
        encoder,
        tuple(words),
        filter_templates(encoder, plan.quick_nouns),
        FeatureStore(),
        plan.output,
        progress,
    )


def _fill_table(plan: Plan, datasets: list[Dataset], workshop: Workshop, found: Benchmark) -> Table:
    measured: dict[tuple[str, Row], Measured] = {}
    for dataset in datasets:
        subject = Subject(dataset, workshop)
        if subject.n_skipped:
            found.notes.append(f"{subject.name}: {subject.n_skipped} images cannot be opened.")
        results: dict[Row, list[Result]] = {}
        for row, result, is_new in _run_rows(plan, subject, workshop):
            results.setdefault(row, []).append(result)
            found.n_computed += is_new
            found.n_kept += not is_new
        for row, several in results.items():
            measured[subject.name, row] = Measured(
                tuple(result.scores for result in several),
                tuple(result.seconds for result in several),
            )
    return build_table(
        plan.layout, workshop.model, [dataset.name for dataset in datasets], measured
    )


@dataclass(frozen=True)
class _Run:
    """A row to be computed for a seed, and what decides the result."""

    row: Row
    seed: int
    facts: Mapping[str, Any]

    @property
    def method(self) -> Method:
        return METHODS[self.row.method or ""]


def _run_rows(
    plan: Plan, subject: Subject, workshop: Workshop
) -> Iterator[tuple[Row, Result, bool]]:
    """Yield every row's result for every seed, and whether it was computed now."""
    report = workshop.progress or silent
    folder = ResultFolder(plan.output / "results")
    rows = [row for row in plan.layout.rows if row.method]
    problems = _Problems(subject, any("gradnorm" in (row.method or "") for row in rows))
    done = count(1)
    for seed in range(plan.seeds):
        runs = []
        for row in rows:
            facts = subject.facts(seed, row.vocabulary)
            facts |= {"method": row.method, "model_name": workshop.model}
            kept = None if plan.again else folder.read(facts)
            if kept is None:
                runs.append(_Run(row, seed, facts))
            else:
                report(f"methods on {subject.name}", next(done), plan.seeds * len(rows))
                yield row, kept, False
        for row, result in _compute(runs, problems, subject.labels, folder):
            report(f"methods on {subject.name}", next(done), plan.seeds * len(rows))
            yield row, result, True


def _compute(
    runs: list[_Run], problems: _Problems, labels: NDArray[np.intp], folder: ResultFolder
) -> Iterator[tuple[Row, Result]]:
    """Compute rows, and yield each as soon as it is there."""
    # A head trains on one core, so as many as there are cores train side by side.
    for is_trained, n_jobs in ((False, 1), (True, count_threads(-1))):
        own = [run for run in runs if run.method.needs_torch is is_trained]
        tasks = [delayed(_run_once)(run, problems.get(run), labels, folder) for run in own]
        results = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        yield from zip((run.row for run in own), results, strict=True)


class _Problems:
    """The problem of the seed at hand; making one encodes and chooses nouns."""

    def __init__(self, subject: Subject, with_gradnorm: bool) -> None:
        self._subject, self._with_gradnorm = subject, with_gradnorm
        self._made: dict[tuple[int, str], Problem] = {}

    def get(self, run: _Run) -> Problem:
        key = (run.seed, run.row.vocabulary)
        if key not in self._made:
            self._made = {known: made for known, made in self._made.items() if known[0] == run.seed}
            self._made[key] = self._subject.problem(*key, with_gradnorm=self._with_gradnorm)
        return self._made[key]


def _run_once(
    run: _Run, problem: Problem, labels: NDArray[np.intp], folder: ResultFolder
) -> Result:
    if run.method.needs_torch:
        import_module("torch")  # Which takes longer than some methods, once.
    start = time.perf_counter()
    found = run.method.fit_predict(problem, run.seed)
    seconds = time.perf_counter() - start
    result = Result(*clustering_scores(labels, found), seconds=seconds)
    folder.write(run.facts, result)
    return result


def _measure_times(plan: Plan, datasets: list[Dataset], workshop: Workshop) -> Iterator[StageTimes]:
    folder = ResultFolder(plan.output / "results")
    for dataset in datasets:
        subject = Subject(dataset, workshop)
        runs: list[dict[str, Any]] = []
        for seed in range(plan.seeds):
            facts = subject.facts(seed)
            facts |= {"method": "time", "model_name": workshop.model}
            seconds = None if plan.again else folder.read_any(facts)
            if seconds is None:
                seconds = stage_seconds(subject.problem(seed), seed)
                folder.write_any(facts, seconds)
            runs.append(seconds)
        means = {stage: float(np.mean([run[stage] for run in runs])) for stage in STAGES}
        yield StageTimes(
            subject.name, workshop.model, len(subject.labels), subject.n_clusters, means
        )
