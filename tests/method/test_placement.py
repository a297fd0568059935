"""Edges of new images to those of a fit, against a slow oracle."""

from __future__ import annotations

import numpy as np
import pytest

from nouncut import NTKSpectralClustering
from nouncut.compute.rows import unit_rows
from nouncut.method.placement import Placement, connect_images, place_images
from nouncut.paper.synthetic import make_clip_like


@pytest.fixture(scope="module", params=[False, True], ids=["looks", "nouns"])
def fitted(request):
    """Return the placement of a fit of 80 images, and 40 other images."""
    data = make_clip_like(120, 4, n_prompts=2, n_nouns=30, random_state=0)
    nouns = data.noun_features if request.param else None
    model = NTKSpectralClustering(4, random_state=0).fit(data.features[:80], noun_features=nouns)
    rows = (np.asarray(unit_rows(data.features[:80]), np.float32),)
    return Placement.from_arrays(model.to_arrays(), rows), unit_rows(data.features[80:])


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def normalized(edges, degrees, n_more):
    own = edges.sum(axis=1)
    every = np.concatenate([degrees, np.full(n_more, degrees.mean()), own])
    return edges / np.sqrt(own)[:, None] / np.sqrt(every)


def dense_edges(placement, more, new):
    every = np.concatenate([placement.kernel.features, more, new]).astype(np.float64)
    known, kernel = len(every) - len(new), placement.kernel
    total = 0
    prompts = kernel.prompts or [None]
    for nouns, degrees, weight in zip(prompts, placement.degrees, placement.weights, strict=True):
        values = every[known:] @ every.T
        if nouns is not None:
            words = softmax(every @ nouns.T.astype(np.float64) / kernel.tau)
            values = values * (1 - kernel.weight + kernel.weight * words[known:] @ words.T)
        values[np.arange(len(new)), known + np.arange(len(new))] = -1
        smallest = np.sort(values, axis=1)[:, -placement.n_neighbors][:, None]
        edges = np.where(values >= np.maximum(smallest, 1e-30), values, 0)
        total = total + weight * normalized(edges, degrees, len(more))
    return normalized(total, placement.mean_degrees, len(more))


@pytest.mark.parametrize("n_more", [0, 15])
def test_edges_are_those_of_the_dense_kernel(fitted, n_more):
    placement, others = fitted
    more, new = others[:n_more], others[n_more:]
    found = connect_images(placement, (more,), (new,)).toarray()
    assert found.shape == (len(new), 80 + len(others))
    np.testing.assert_allclose(found, dense_edges(placement, more, new), rtol=1e-4, atol=1e-7)


def test_no_new_images_have_no_edges(fitted):
    placement, others = fitted
    assert connect_images(placement, (others,), (others[:0],)).shape == (0, 120)


def test_a_part_of_the_images_places_by_itself(fitted):
    placement, others = fitted
    every = placement.take(np.arange(80), placement.images)
    whole = place_images(placement, others, others)
    np.testing.assert_array_equal(place_images(every, others, others), whole)
    part = placement.take(np.arange(0, 80, 2), np.arange(40))
    assert part.images.tolist() == list(range(40))
    assert part.degrees.shape == (len(placement.degrees), 40)
    placed = place_images(part, others, others)
    # Half of the images of a fit say about the same.
    assert np.mean(np.sum(placed * whole, axis=1) > 0.9) > 0.8
