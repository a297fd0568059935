"""Cluster features with a method of another package, as Python: compiling it takes minutes.

Reads ``{"method": ..., "features": [arrays]}`` from standard input, and writes the labels of each
array. Run with ``NUMBA_DISABLE_JIT=1``.
"""

from __future__ import annotations

import importlib
import json
import sys

import numba
import numpy as np

from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.baselines.problem import Problem


def compile_embedding_of_evoc() -> None:
    """Compile the one module whose little integers, as Python, do not hold its numbers."""
    import evoc.clustering
    import evoc.node_embedding

    numba.config.DISABLE_JIT = False
    compiled = importlib.reload(evoc.node_embedding)
    evoc.clustering.node_embedding = compiled.node_embedding


def main() -> None:
    request = json.load(sys.stdin)
    if request["method"] == "evoc":
        compile_embedding_of_evoc()
    nothing = np.empty((0, 16))
    found = []
    for rows in request["features"]:
        # Nothing but the images is needed, least of all the number of clusters.
        images = np.array(rows, np.float32)
        problem = Problem(images, nothing, 0, [], nothing, nothing, None)
        found.append(METHODS[request["method"]].fit_predict(problem, 0).tolist())
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
