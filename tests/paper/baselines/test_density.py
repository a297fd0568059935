from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import homogeneity_score

from nouncut.compute.rows import unit_rows
from nouncut.paper.baselines.density import assign_noise


def test_noise_goes_to_the_nearest_mean_direction():
    angles = np.radians([0, 10, 20, 90, 100, 30, 60, 80])
    features = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    found = assign_noise(features, np.array([0, 0, 0, 1, 1, -1, -1, -1]))
    # The means are at 10 and 95 degrees.
    assert found.tolist() == [0, 0, 0, 1, 1, 0, 1, 1]
    assert assign_noise(features, np.full(8, -1)).tolist() == [0] * 8


def blobs(n_clusters: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    classes = np.arange(n) % n_clusters
    return unit_rows(np.eye(16)[classes] + 0.05 * rng.normal(size=(n, 16))), classes


@pytest.mark.parametrize("name", ["evoc", "umap-hdbscan"])
def test_clusters_of_one_class_each_are_found_without_their_number(name):
    features, classes = blobs(4, 48)
    few, _ = blobs(2, 6)
    request = {"method": name, "features": [array.tolist() for array in (features, features, few)]}
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("uncompiled.py")],
        input=json.dumps(request),
        stdout=subprocess.PIPE,
        env=os.environ | {"NUMBA_DISABLE_JIT": "1"},
        text=True,
        check=True,
    )
    labels, again, of_few = json.loads(done.stdout)
    assert max(labels) >= 3
    assert homogeneity_score(classes, labels) == pytest.approx(1)
    assert again == labels
    assert of_few == [0] * 6
