"""Groups that an edit did not change are not described again, and nobody can tell."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from nouncut.errors import InputError
from nouncut.method.graphs import normalize_graph
from nouncut.runs.edit_log import EDITS
from nouncut.runs.edited_tables import GroupFacts
from nouncut.runs.exemplars import cohesion, edges_within, typical_images
from nouncut.runs.run import open_run
from nouncut.runs.writer import RunContents, RunWriter

N_IMAGES = 24

rows = st.lists(st.integers(0, N_IMAGES - 1), min_size=1, max_size=6)
verbs = st.one_of(
    st.tuples(st.just("merge"), st.lists(st.integers(0, 5), min_size=2, max_size=3)),
    st.tuples(st.just("move"), rows, st.integers(0, 5)),
    st.tuples(st.just("move"), rows, st.sampled_from(["x", "y"])),
    st.tuples(st.just("set_aside"), rows),
    st.tuples(st.just("split"), st.integers(0, 5), st.integers(2, 3)),
    st.tuples(st.just("rename"), st.integers(0, 5), st.sampled_from("abc")),
    st.tuples(st.sampled_from(["undo", "redo"])),
)


@pytest.fixture(scope="module")
def run(make_run, tmp_path_factory):
    """Return a small run with a graph of random weights, with and without copies of images."""
    folder = tmp_path_factory.mktemp("random")
    small = make_run(folder / "small")
    rng = np.random.default_rng(0)
    weights = rng.random((N_IMAGES, N_IMAGES)) * (rng.random((N_IMAGES, N_IMAGES)) < 0.3)
    graph = normalize_graph(csr_array(weights + weights.T))[0]
    parts = {f"graph_{name}": getattr(graph, name) for name in ("data", "indices", "indptr")}
    tables = small.assignments, small.clusters, small.images
    with RunWriter(folder / "run") as writer:
        return writer.finish(RunContents(small.manifest, *tables, arrays=parts))


def fresh_facts(run):
    hashes = run.images["hash"].slice(0, len(run.assignments)).combine_chunks()
    return GroupFacts(run.graph(), hashes)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(verbs, max_size=8))
def test_descriptions_are_those_of_a_full_recomputation(run, calls):
    (run.directory / EDITS).unlink(missing_ok=True)
    live = open_run(run.directory)
    for verb, *arguments in calls:
        with suppress(InputError):
            getattr(live, verb)(*arguments)
        fresh = fresh_facts(live.computed)
        assert live.computed.group_facts.describe(live.labels, live.assignments) == fresh.describe(
            live.labels, live.assignments
        )
    assert live.clusters.to_pylist() == open_run(run.directory).clusters.to_pylist()
    (run.directory / EDITS).unlink(missing_ok=True)


def test_descriptions_are_those_of_the_whole_graph(run):
    labels = np.random.default_rng(1).integers(0, 4, N_IMAGES)
    found = fresh_facts(run).describe(labels, run.assignments)
    graph, hashes = run.graph(), run.images["hash"].to_pylist()
    assert [found[n]["cohesion"] for n in range(4)] == cohesion(graph, labels).tolist()
    assert [found[n]["exemplars"] for n in range(4)] == typical_images(graph, labels, hashes)
    assert [found[n]["size"] for n in range(4)] == np.bincount(labels).tolist()


@given(st.sets(st.integers(0, N_IMAGES - 1)), st.integers(0, 2**32 - 1))
def test_edges_of_some_images_are_those_of_all(chosen, seed):
    rng = np.random.default_rng(seed)
    graph = csr_array(rng.random((N_IMAGES, N_IMAGES)) * (rng.random((N_IMAGES, N_IMAGES)) < 0.2))
    labels, rows = rng.integers(0, 3, N_IMAGES), np.array(sorted(chosen), dtype=np.intp)
    every = edges_within(graph, labels)
    assert edges_within(graph, labels, rows).tolist() == every[rows].tolist()
    dense = np.where(labels[:, None] == labels, graph.toarray(), 0).sum(axis=1)
    assert every == pytest.approx(dense)
