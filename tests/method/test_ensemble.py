from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from nouncut.errors import ParameterError
from nouncut.method import ensemble as ensemble_module
from nouncut.method.ensemble import choose_solver, ensemble_graphs
from nouncut.method.graphs import normalize_graph


def test_auto_is_exact_for_few_images_that_fit_in_memory(monkeypatch):
    assert choose_solver("auto", 40, 2) == "exact"
    assert choose_solver("auto", 600, 2) == "spectral"
    assert choose_solver("exact", 600, 2) == "exact"
    monkeypatch.setattr(ensemble_module, "available_memory", lambda: 1000)
    assert choose_solver("auto", 40, 2) == "spectral"
    with pytest.raises(ParameterError, match="`solver` must be one of"):
        choose_solver("fast", 40, 2)


def test_a_single_graph_is_cut_without_diffusion(random_graphs):
    (graph,) = random_graphs(30, 1, seed=0)
    found = ensemble_graphs([graph], 3, cut="diffused")
    assert found.solver is None
    np.testing.assert_array_equal(found.cut.graph.toarray(), graph.toarray())
    expected = np.linalg.eigvalsh(graph.toarray())[::-1][:3]
    np.testing.assert_allclose(found.cut.eigenpairs.values, expected)


@pytest.mark.parametrize("solver", ["exact", "spectral"])
@pytest.mark.parametrize("n_graphs", [1, 3])
def test_the_mean_graph_is_normalised_again(random_graphs, n_graphs, solver):
    graphs = random_graphs(40, n_graphs, seed=0)
    cut, prompts, used = ensemble_graphs(graphs, 3, solver=solver, random_state=0)
    assert used == (solver if n_graphs > 1 else None)
    mean = sum(w * g for w, g in zip(prompts.weights, graphs, strict=True))
    expected, degrees = normalize_graph(csr_array(mean))
    np.testing.assert_allclose(cut.graph.toarray(), expected.toarray(), atol=1e-3)
    np.testing.assert_allclose(cut.mean_degrees, degrees, atol=1e-3)
    values = np.linalg.eigvalsh(cut.graph.toarray())[::-1][:3]
    np.testing.assert_allclose(cut.eigenpairs.values, values, atol=1e-5)
