"""How far nouns are trusted, and what that is worth, on made CLIP-like data and photographs.

Run ``python benchmarks/trust.py [FOLDER ...]``; each folder has one sub-folder per class. Labels
are used for scores only; the number of clusters is given. In made data with "wrong" nouns, every
image has the meaning of another one, drawn at random.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from _setting import print_result, setting
from nouncut import NTKSpectralClustering, encode_nouns
from nouncut.models.choose import load_encoder
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like
from nouncut.words.prompts import PROMPTS
from quality import Photographs

SEPARATIONS = (0.15, 0.2, 0.25, 0.35)
NUMBERS = (10, 40)
N_IMAGES = 1000


class Problem(NamedTuple):
    """Images with nouns and known classes; `semantic` is None in the space of the nouns."""

    name: str
    visual: NDArray[Any]
    semantic: NDArray[Any] | None
    nouns: list[NDArray[Any]]
    classes: NDArray[Any]
    tau: Any


def made_problems() -> Iterator[Problem]:
    for k in NUMBERS:
        for separation in SEPARATIONS:
            data = make_clip_like(N_IMAGES, k, separation=separation, random_state=0)
            name = f"made, {k} classes, separation {separation}"
            X, nouns = data.features, data.noun_features
            yield Problem(name, X, None, nouns, data.labels, 0.04)
            other = X[np.random.default_rng(0).permutation(N_IMAGES)]
            yield Problem(f"{name}, wrong nouns", X, other, nouns, data.labels, 0.04)


def photographs(folders: list[Path], model: str) -> Iterator[Problem]:
    encoder = load_encoder(model).encoder
    for folder in folders:
        data = Photographs(folder, encoder)
        nouns = encode_nouns(data.nouns("tac", 0), PROMPTS, encoder)
        semantic = None if encoder.shares_space else data.semantic
        tau = encoder.tau or "auto"
        yield Problem(data.name, data.visual, semantic, nouns, data.classes, tau)


def judge(problem: Problem) -> dict[str, Any]:
    k = len(set(problem.classes.tolist()))
    row: dict[str, Any] = {"data": problem.name}
    weights: dict[str, Any] = {"looks alone": 0.0, "nouns at full weight": 1.0, "auto": "auto"}
    for title, weight in weights.items():
        model = NTKSpectralClustering(
            k, tau=problem.tau, semantic_weight=weight, random_state=0, n_jobs=-1
        )
        model.fit(problem.visual, noun_features=problem.nouns, semantic_features=problem.semantic)
        score = clustering_scores(problem.classes, model.labels_)
        row[f"{title}, ACC"] = round(100 * score.acc, 1)
    trust = model.noun_trust_
    row["weight"] = round(model.semantic_weight_, 2)
    row["agreement"] = round(trust.agreement, 2) if trust else None
    row["stability of looks"] = round(trust.looks_stability, 2) if trust else None
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders with a folder per class")
    parser.add_argument("--model", default="mini", help="what load_encoder takes (default: mini)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    result = setting("scikit-learn")
    result["made data"] = [judge(problem) for problem in made_problems()]
    if arguments.folders:
        found = photographs(arguments.folders, arguments.model)
        result[f"photographs, {arguments.model}"] = [judge(problem) for problem in found]
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
