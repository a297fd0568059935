"""All methods of the paper's tables by name, each on the features that suit it.

Methods that compare images with images are given the visual features, those that compare them
with nouns the semantic ones; models of the CLIP family have the same for both. The image modality
of methods with two is visual, the other is the text counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from nouncut.paper.baselines.gradnorm import gradnorm_nouns
from nouncut.paper.baselines.kmeans import SphericalKMeans
from nouncut.paper.baselines.method import Baseline, Method, Problem
from nouncut.paper.baselines.ours import (
    ours,
    ours_with_gradnorm_nouns,
    ours_with_prompt,
    single_prompt,
)
from nouncut.paper.baselines.scan import SCAN
from nouncut.paper.baselines.sic import SIC
from nouncut.paper.baselines.spectral import KERNEL_NAMES, KernelName, KernelSpectralClustering
from nouncut.paper.baselines.tac import TAC
from nouncut.paper.baselines.tac_heads import TACHeads
from nouncut.paper.baselines.zero_shot import ZeroShot
from nouncut.words.prompts import PROMPTS

Labels = NDArray[np.intp]
# What the paper's kernel table writes in capitals.
_KERNEL_TITLES = {"rbf": "RBF"}


def _cluster(model: Baseline, X: NDArray[Any], **inputs: Any) -> Labels:
    labels: Labels = model.fit_predict(X, **inputs)
    return labels


def _zero_shot(problem: Problem, seed: int) -> Labels:
    if problem.class_features is None:
        raise ValueError(
            "Zero-shot classification needs the names of the classes. Give the data set's class "
            "names, or leave this method out."
        )
    return _cluster(ZeroShot(), problem.semantic, class_features=problem.class_features)


def _kmeans(problem: Problem, seed: int) -> Labels:
    model = SphericalKMeans(problem.n_clusters, random_state=seed, n_jobs=-1)
    return _cluster(model, problem.visual)


def _spectral(problem: Problem, seed: int, *, kernel: KernelName) -> Labels:
    model = KernelSpectralClustering(problem.n_clusters, kernel=kernel, random_state=seed)
    return _cluster(model, problem.visual)


def _tac(
    problem: Problem,
    seed: int,
    *,
    method: Literal["kmeans"] | KernelName = "kmeans",
    prompt: int | None = None,
) -> Labels:
    return _cluster(
        TAC(problem.n_clusters, method=method, random_state=seed),
        problem.visual,
        noun_features=problem.nouns if prompt is None else single_prompt(problem, prompt),
        semantic_features=problem.semantic,
    )


def _gradnorm(problem: Problem, seed: int) -> Labels:
    return _cluster(
        TAC(problem.n_clusters, random_state=seed),
        problem.visual,
        noun_features=gradnorm_nouns(problem, seed),
        semantic_features=problem.semantic,
    )


def _scan(problem: Problem, seed: int) -> Labels:
    return _cluster(SCAN(problem.n_clusters, random_state=seed), problem.visual)


def _sic(problem: Problem, seed: int) -> Labels:
    return _cluster(
        SIC(problem.n_clusters, random_state=seed),
        problem.visual,
        candidate_features=problem.candidates,
        semantic_features=problem.semantic,
    )


def _tac_heads(problem: Problem, seed: int) -> Labels:
    return _cluster(
        TACHeads(problem.n_clusters, random_state=seed),
        problem.visual,
        noun_features=problem.nouns,
        semantic_features=problem.semantic,
    )


def _all_methods() -> Iterator[Method]:
    yield Method(
        "clip-zero-shot", "CLIP (zero-shot)", "CLIP", _zero_shot, paper_name="CLIP (zero-shot)"
    )
    yield Method("clip-kmeans", "CLIP (KMeans)", "CLIP", _kmeans, paper_name="CLIP (KMeans)")
    for kernel in KERNEL_NAMES:
        run = partial(_spectral, kernel=kernel)
        yield Method(f"clip-sc-{kernel}", *_kernel_names("CLIP", kernel, run))
    yield Method("tac-kmeans", "TAC (KMeans)", "TAC", _tac, paper_name="TAC (KMeans)")
    for kernel in KERNEL_NAMES:
        run = partial(_tac, method=kernel)
        yield Method(f"tac-sc-{kernel}", *_kernel_names("TAC", kernel, run))
    yield Method("gradnorm", "GradNorm", "TAC", _gradnorm, paper_name="GradNorm")
    yield Method("scan", "SCAN", "trained", _scan, needs_torch=True, paper_name="SCAN")
    yield Method("sic", "SIC", "trained", _sic, needs_torch=True, paper_name="SIC")
    yield Method("tac", "TAC (trained heads)", "trained", _tac_heads, needs_torch=True)
    yield from _our_methods()
    for number in range(1, len(PROMPTS) + 1):
        yield from _prompt_methods(number)


def _kernel_names(family: str, kernel: KernelName, run: Any) -> tuple[Any, ...]:
    kernel_title = _KERNEL_TITLES.get(kernel, kernel.capitalize())
    # Outside its kernel table the paper calls RBF plainly SC.
    paper_name = f"{family} (SC)" if kernel == "rbf" else kernel_title
    return f"{family} (SC, {kernel_title})", family, run, False, paper_name


def _our_methods() -> Iterator[Method]:
    yield Method("ours", "Ours (RAD)", "ours", ours, paper_name="Ours")
    naive, pe = (partial(ours, ensemble=how) for how in ("average", "prompt_mean"))
    yield Method("ours-naive", "Ours (naive)", "ours", naive, paper_name="Ours (naive)")
    yield Method("ours-pe", "Ours (PE)", "ours", pe, paper_name="Ours (PE)")
    yield Method("ours-gradnorm", "Ours (GradNorm nouns)", "ours", ours_with_gradnorm_nouns)


def _prompt_methods(number: int) -> Iterator[Method]:
    for name, title, family, run in (
        ("tac-kmeans", "TAC (KMeans)", "TAC", partial(_tac, prompt=number)),
        ("tac-sc-rbf", "TAC (SC)", "TAC", partial(_tac, method="rbf", prompt=number)),
        ("ours", "Ours", "ours", partial(ours_with_prompt, prompt=number)),
    ):
        yield Method(
            f"{name}-prompt-{number}", f"{title}, prompt {number}", family, run, False, title
        )


METHODS: dict[str, Method] = {method.name: method for method in _all_methods()}
"""All methods by name, in the order of tables."""
