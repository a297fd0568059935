"""The benchmark: every row of a table on every data set; kept results are not computed again."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from itertools import count, groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from nouncut.compute.progress import Progress, silent
from nouncut.compute.threads import count_threads
from nouncut.method.choices import Symmetry
from nouncut.paper.baselines.methods import METHODS, Method
from nouncut.paper.baselines.problem import Problem
from nouncut.paper.bench.columns import DataColumn, load_columns
from nouncut.paper.bench.encoded_dataset import EncodedDataset
from nouncut.paper.bench.output_folder import ResultFolder
from nouncut.paper.bench.setup import BenchSetup, load_setup, load_words
from nouncut.paper.bench.stage_times import STAGES, run_stages
from nouncut.paper.optional_packages import require_package
from nouncut.paper.published import DEFAULT_BACKBONE, PromptNouns, ShiftNouns
from nouncut.paper.scores import Result, clustering_scores, plain_accuracy
from nouncut.paper.tables.paper_tables import Layout, Row
from nouncut.paper.tables.paper_tables import Vocabulary as RowVocabulary
from nouncut.paper.tables.score_table import Table, build_table
from nouncut.paper.tables.significance import Significance, significance_table


@dataclass(frozen=True)
class Plan:
    """The table, data sets and models of a benchmark, and where its results are kept."""

    layout: Layout
    data: tuple[str, ...]
    models: tuple[str, ...]
    output: Path
    data_root: Path | None = None
    seeds: int = 5
    vocabulary: str = "wordnet"
    quick_nouns: bool = False
    shift_nouns: ShiftNouns = "train"
    prompt_nouns: PromptNouns = "own"
    neighbors: Symmetry = "union"
    again: bool = False


@dataclass(frozen=True)
class StageTimes:
    """Mean seconds of our method's stages in one column."""

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
    significance: dict[str, list[Significance]] = field(default_factory=dict)
    n_computed: int = 0
    n_kept: int = 0
    notes: list[str] = field(default_factory=list)


def run_benchmark(plan: Plan, progress: Progress = silent) -> Benchmark:
    """Run a benchmark, or the rest of it."""
    found = Benchmark()
    if plan.layout.name == "wilcoxon":
        # Even if there are data: it says at once if methods are missing.
        published = significance_table(build_table(plan.layout, DEFAULT_BACKBONE, [], {}))
        if not plan.data:
            found.significance[""] = published
            return found
    _check_packages(plan.layout)
    # Before a model is loaded: missing files are common, and loading takes time.
    words = load_words(plan.vocabulary)
    columns = load_columns(plan.data, plan.data_root, plan.shift_nouns)
    for model in plan.models:
        setup = load_setup(
            model,
            plan.output,
            words,
            quick_nouns=plan.quick_nouns,
            neighbors=plan.neighbors,
            progress=progress,
        )
        if plan.layout.name == "time":
            found.times.extend(measure_times(plan, columns, setup))
            continue
        found.tables.append(fill_table(plan, columns, setup, found))
        if plan.layout.name == "wilcoxon":
            found.significance[setup.model] = significance_table(found.tables[-1])
    return found


def _check_packages(layout: Layout) -> None:
    for row in layout.rows:
        package = _package(METHODS[row.method]) if row.method else None
        if package:
            require_package(package, f"The method {row.method}", "Or leave it out of `methods`.")


def _package(method: Method) -> str | None:
    return "torch" if method.needs_torch else method.package


def fill_table(
    plan: Plan, columns: Sequence[DataColumn], setup: BenchSetup, found: Benchmark
) -> Table:
    """Fill a table; `found` counts the results and collects notes."""
    measured: dict[tuple[str, Row], list[Result]] = {}
    encoded = None
    for column in columns:
        parts: dict[Row, list[list[Result]]] = defaultdict(list)
        for dataset in column.load():
            encoded = EncodedDataset(dataset, setup, encoded)
            if encoded.n_skipped:
                found.notes.append(f"{encoded.name}: {encoded.n_skipped} images cannot be opened.")
            for row, results in _collect(plan, encoded, found).items():
                parts[row].append(results)
        for row, of_parts in parts.items():
            measured[column.column.title, row] = mean_results(of_parts)
    found.notes.extend(_plain_notes(setup.model, measured))
    return build_table(plan.layout, setup.model, [one.column for one in columns], measured)


def mean_results(parts: Sequence[Sequence[Result]]) -> list[Result]:
    """Return the mean over data sets, seed by seed."""
    if len(parts) == 1:
        return list(parts[0])
    return [_mean_result(seed) for seed in zip(*parts, strict=True)]


def _mean_result(results: Sequence[Result]) -> Result:
    plain = [result.plain_acc for result in results if result.plain_acc is not None]
    nmi, acc, ari, seconds = np.mean([result[:4] for result in results], axis=0).tolist()
    plain_acc = float(np.mean(plain)) if len(plain) == len(results) else None
    return Result(nmi, acc, ari, seconds, plain_acc)


def _collect(plan: Plan, encoded: EncodedDataset, found: Benchmark) -> dict[Row, list[Result]]:
    """Return every row's results, in the order of seeds."""
    results: dict[Row, list[Result]] = defaultdict(list)
    for row, result, is_new in _run_rows(plan, encoded):
        results[row].append(result)
        found.n_computed += is_new
        found.n_kept += not is_new
    return results


def _plain_notes(model: str, measured: Mapping[tuple[str, Row], list[Result]]) -> Iterator[str]:
    """Give the accuracy of methods that classify, without a match of clusters with classes."""
    for row in dict.fromkeys(row for _, row in measured):
        plain = {
            dataset: [result.plain_acc for result in results if result.plain_acc is not None]
            for (dataset, other), results in measured.items()
            if other == row
        }
        texts = [f"{name} {100 * np.mean(own):.1f}" for name, own in plain.items() if own]
        if texts:
            yield (
                f"{row.title}, {model}: ACC of its labels as given, not matched with classes: "
                f"{'; '.join(texts)}."
            )


class _Run(NamedTuple):
    """A row to compute for a seed, and the facts that decide the result."""

    row: Row
    method: Method
    seed: int
    facts: Mapping[str, Any]


class _NounChoice(NamedTuple):
    """What else than seed and data set decides the nouns of a row."""

    vocabulary: RowVocabulary
    prompt: int | None


def _run_rows(plan: Plan, encoded: EncodedDataset) -> Iterator[tuple[Row, Result, bool]]:
    """Yield every row's result for every seed, and whether it was computed now."""
    results, progress = encoded.setup.results, encoded.setup.progress
    rows = [(row, METHODS[row.method]) for row in plan.layout.rows if row.method]

    def noun_choice(row_method: tuple[Row, Method]) -> _NounChoice:
        row, method = row_method
        return _NounChoice(row.vocabulary, method.prompt if plan.prompt_nouns == "own" else None)

    done = count(1)
    for seed in range(plan.seeds):
        for choice, group in groupby(rows, noun_choice):
            runs = []
            for row, method in group:
                facts = encoded.result_facts(method.name, seed, *choice)
                kept = None if plan.again else results.read(facts)
                if kept is None:
                    runs.append(_Run(row, method, seed, facts))
                else:
                    progress(f"methods on {encoded.name}", next(done), plan.seeds * len(rows))
                    yield row, Result(**kept), False
            for row, result in _compute(runs, choice, encoded):
                progress(f"methods on {encoded.name}", next(done), plan.seeds * len(rows))
                yield row, result, True


def _compute(
    runs: list[_Run], choice: _NounChoice, encoded: EncodedDataset
) -> Iterator[tuple[Row, Result]]:
    """Compute rows with the same nouns, and yield each as soon as it is there."""
    if not runs:
        return
    with_gradnorm = any("gradnorm" in run.method.name for run in runs)
    with_train = any(run.method.needs_torch for run in runs)
    problem = encoded.problem(
        runs[0].seed, *choice, with_gradnorm=with_gradnorm, with_train=with_train
    )
    labels, results = encoded.labels, encoded.setup.results
    # A head trains on one core, so several train side by side; other methods use all cores.
    for is_trained, n_jobs in ((False, 1), (True, count_threads(-1))):
        own = [run for run in runs if run.method.needs_torch is is_trained]
        tasks = [delayed(_run_once)(run, problem, labels, results) for run in own]
        computed = Parallel(n_jobs=n_jobs, return_as="generator")(tasks)
        yield from zip((run.row for run in own), computed, strict=True)


def _run_once(
    run: _Run, problem: Problem, labels: NDArray[np.intp], results: ResultFolder
) -> Result:
    if package := _package(run.method):
        # Not in the measured time: the import takes longer than some methods.
        import_module(package)
    start = time.perf_counter()
    found = run.method.fit_predict(problem, run.seed)
    seconds = time.perf_counter() - start
    plain = plain_accuracy(labels, found) if run.method.classifies else None
    result = Result(*clustering_scores(labels, found), seconds=seconds, plain_acc=plain)
    results.write(run.facts, result._asdict())
    return result


def measure_times(
    plan: Plan, columns: Sequence[DataColumn], setup: BenchSetup
) -> Iterator[StageTimes]:
    """Measure the stages of our method in every column."""
    encoded = None
    for column in columns:
        runs = []
        for dataset in column.load():
            encoded = EncodedDataset(dataset, setup, encoded)
            for seed in range(plan.seeds):
                facts = encoded.result_facts("time", seed)
                compute = partial(_time_stages, encoded, seed)
                runs.append(setup.results.read_or_compute(facts, compute, plan.again))
        assert encoded is not None
        means = {stage: float(np.mean([run[stage] for run in runs])) for stage in STAGES}
        n_images, n_clusters = len(encoded.labels), encoded.n_clusters
        yield StageTimes(column.column.title, setup.model, n_images, n_clusters, means)


def _time_stages(encoded: EncodedDataset, seed: int) -> dict[str, float]:
    return run_stages(encoded.problem(seed), seed)[1]
