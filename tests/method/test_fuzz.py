"""Any parameters and any finite data: an answer, or a ValueError that says what is wrong."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut import NTKSpectralClustering
from nouncut.errors import ParameterError

PARAMETERS = st.fixed_dictionaries(
    {
        "n_clusters": st.sampled_from([1, 2, 3, 5, "auto"]),
        "tau": st.sampled_from([1e-30, 1e-10, 0.04, 1.0, 1e10, 1e30, "auto"]),
        "n_neighbors": st.sampled_from(["auto", 1, 2, 5, 30]),
        "mu": st.sampled_from([1e-6, 0.1, 1.0, 1e6]),
        "lam": st.sampled_from([1e-9, 10.0, 1e9]),
        "lam_scale": st.sampled_from(["absolute", "per_image"]),
        "neighbors": st.sampled_from(["union", "mutual"]),
        "ensemble": st.sampled_from(["weighted", "diffusion", "average", "prompt_mean"]),
        "solver": st.sampled_from(["exact", "spectral"]),
        "assign_labels": st.sampled_from(["discretize", "cluster_qr", "kmeans"]),
    }
)
KINDS = {
    "any": lambda X: X,
    "lattice": np.round,
    "copies": lambda X: X[np.arange(len(X)) % max(1, len(X) // 4)],
    "zeros": lambda X: X * (np.arange(len(X)) % 3 > 0)[:, None],
    "opposite": lambda X: np.where(np.arange(len(X))[:, None] % 2, X[:1], -X[:1]) + 1e-3 * X,
    "one-hot": lambda X: np.eye(X.shape[1])[np.abs(X).argmax(axis=1)],
}


@settings(max_examples=120, deadline=None)
@given(
    parameters=PARAMETERS,
    shape=st.sampled_from([(2, 1), (3, 2), (5, 1), (10, 3), (20, 8), (60, 2), (60, 16)]),
    kind=st.sampled_from(sorted(KINDS)),
    n_nouns=st.sampled_from([1, 2, 20]),
    n_prompts=st.integers(0, 3),
    exponent=st.sampled_from([-300, -150, 0, 0, 0, 150, 300]),
    seed=st.integers(0, 2**16),
)
def test_only_clear_errors_and_no_warning_of_numpy(
    parameters, shape, kind, n_nouns, n_prompts, exponent, seed
):
    rng = np.random.default_rng(seed)
    X = KINDS[kind](rng.normal(size=shape)) * 10.0**exponent
    nouns = [rng.normal(size=(n_nouns, shape[1])) for _ in range(n_prompts)] or None
    model = NTKSpectralClustering(**parameters, random_state=0)
    with warnings.catch_warnings():
        for ours in (
            "The features of",
            "Only",
            ".* images have no",
            "The images fall",
            ".* neighbours were asked",
        ):
            warnings.filterwarnings("ignore", ours, UserWarning)
        if parameters["n_clusters"] != "auto" and parameters["n_clusters"] > shape[0]:
            with pytest.raises(ParameterError, match="ask for fewer clusters"):
                model.fit(X, noun_features=nouns)
            return
        model.fit(X, noun_features=nouns)
        n_distinct = len(np.unique(model.originals_))
        if parameters["n_clusters"] != "auto":
            assert model.n_clusters_ == min(parameters["n_clusters"], n_distinct)
        assert set(model.labels_) == set(range(model.n_clusters_))
        np.testing.assert_array_equal(model.predict(X), model.labels_)
        probabilities = model.predict_proba(np.vstack([X, rng.normal(size=(3, shape[1]))]))
        np.testing.assert_allclose(probabilities.sum(axis=1), 1)
        again = NTKSpectralClustering(**parameters, random_state=0, n_jobs=2)
        np.testing.assert_array_equal(again.fit(X, noun_features=nouns).labels_, model.labels_)
