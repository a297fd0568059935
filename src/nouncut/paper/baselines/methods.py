"""All methods of the paper's tables by name, each on the features that suit it.

Methods that compare images with images use the visual features, those that compare images with
nouns the semantic ones; models of the CLIP family have the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nouncut.paper.baselines.density import evoc, umap_hdbscan
from nouncut.paper.baselines.kmeans import spherical_kmeans
from nouncut.paper.baselines.nearest import nearest_centers
from nouncut.paper.baselines.ours import PRODUCT_DEFAULTS, fit_ours
from nouncut.paper.baselines.problem import Problem, unit_features
from nouncut.paper.baselines.scan import scan
from nouncut.paper.baselines.sic import sic
from nouncut.paper.baselines.spectral import KERNEL_NAMES, KernelName, kernel_spectral_clustering
from nouncut.paper.baselines.subspace import ensc, ssc_omp
from nouncut.paper.baselines.tac import tac_features
from nouncut.paper.baselines.tac_heads import tac_heads
from nouncut.paper.baselines.temi import temi
from nouncut.paper.baselines.turtle import turtle
from nouncut.words.filters import mean_prompt_features
from nouncut.words.prompts import PROMPTS

Labels = NDArray[np.intp]
# The paper's tables write this kernel in capitals.
_KERNEL_TITLES = {"rbf": "RBF"}


@dataclass(frozen=True)
class Method:
    """A way to cluster the images of a problem; `paper_name` is its row in the paper's tables.

    `prompt` is the only prompt it uses, counted from 1.
    """

    name: str
    title: str
    fit_predict: Callable[[Problem, int], Labels]
    paper_name: str | None = None
    needs_torch: bool = False
    prompt: int | None = None
    # Its labels are the classes themselves.
    classifies: bool = False
    # A package that is imported only when the method runs.
    package: str | None = None


def _zero_shot(problem: Problem, seed: int) -> Labels:
    """Classify by the classes' names: no clustering, but tables show it for comparison."""
    classes = unit_features(problem.class_features)
    return nearest_centers(problem.unit_semantic, classes).labels


def _noun_zero_shot(problem: Problem, seed: int) -> Labels:
    """Classify by the positive nouns, then merge nouns to K clusters by their features.

    K-means sees the noun of every image, so a noun weighs as much as it has images.
    """
    nouns = mean_prompt_features(problem.nouns)
    best = nearest_centers(problem.unit_semantic, nouns).labels
    return spherical_kmeans(nouns[best], problem.n_clusters, seed).labels


def _clip_kmeans(problem: Problem, seed: int) -> Labels:
    return spherical_kmeans(problem.unit_visual, problem.n_clusters, seed).labels


def _tac_kmeans(problem: Problem, seed: int, *, prompt: int | None = None) -> Labels:
    features = tac_features(problem, _prompts(problem, prompt))
    return spherical_kmeans(features, problem.n_clusters, seed).labels


def _gradnorm(problem: Problem, seed: int) -> Labels:
    features = tac_features(problem, problem.gradnorm_nouns)
    return spherical_kmeans(features, problem.n_clusters, seed).labels


def _clip_sc(problem: Problem, seed: int, *, kernel: KernelName, **options: Any) -> Labels:
    options = {"tau": problem.tau, **options}
    return kernel_spectral_clustering(
        problem.unit_visual, problem.n_clusters, kernel, seed, **options
    )


def _tac_sc(
    problem: Problem, seed: int, *, kernel: KernelName, prompt: int | None = None, **options: Any
) -> Labels:
    features = tac_features(problem, _prompts(problem, prompt))
    # TAC puts two unit vectors side by side. Ours are scaled to length one together, which halves
    # the squared distances.
    options = {"tau": problem.tau and problem.tau / 2, **options}
    return kernel_spectral_clustering(features, problem.n_clusters, kernel, seed, **options)


def _visual(
    problem: Problem, seed: int, *, cluster: Callable[[NDArray[np.float32], int, int], Labels]
) -> Labels:
    return cluster(problem.unit_visual, problem.n_clusters, seed)


def _uncounted(
    problem: Problem, seed: int, *, cluster: Callable[[NDArray[np.float32], int], Labels]
) -> Labels:
    """Run a method that is not given the number of clusters."""
    return cluster(problem.unit_visual, seed)


def _scan(problem: Problem, seed: int, *, self_label: bool = False) -> Labels:
    return scan(problem, seed, self_label=self_label).labels


def _sic(problem: Problem, seed: int) -> Labels:
    return sic(problem, seed).labels


def _tac_heads(problem: Problem, seed: int) -> Labels:
    return tac_heads(problem, seed).labels


def _turtle(problem: Problem, seed: int) -> Labels:
    spaces, train_spaces = [problem.unit_visual], [problem.unit_train_visual]
    return turtle(spaces, train_spaces, problem.n_clusters, seed).labels


def _temi(problem: Problem, seed: int) -> Labels:
    return temi(problem, seed).labels


def _ours(problem: Problem, seed: int, *, prompt: int | None = None, **options: Any) -> Labels:
    return fit_ours(problem, seed, _prompts(problem, prompt), **options).labels_


def _ours_with_gradnorm_nouns(problem: Problem, seed: int) -> Labels:
    return fit_ours(problem, seed, problem.gradnorm_nouns).labels_


def _prompts(problem: Problem, prompt: int | None) -> list[NDArray[Any]]:
    """Return the nouns with all prompts, or with one, counted from 1."""
    return problem.nouns if prompt is None else [problem.nouns[prompt - 1]]


def _all_methods() -> Iterator[Method]:
    zero_shot = "CLIP (zero-shot)"
    yield Method("clip-zero-shot", zero_shot, _zero_shot, zero_shot, classifies=True)
    yield Method("wordnet-zero-shot", "WordNet (zero-shot)", _noun_zero_shot)
    yield Method("clip-kmeans", "CLIP (KMeans)", _clip_kmeans, "CLIP (KMeans)")
    yield from _kernel_methods("CLIP", _clip_sc)
    yield from _visual_methods()
    yield Method("tac-kmeans", "TAC (KMeans)", _tac_kmeans, "TAC (KMeans)")
    yield from _kernel_methods("TAC", _tac_sc)
    yield Method("gradnorm", "GradNorm", _gradnorm, "GradNorm")
    yield Method("scan", "SCAN", _scan, "SCAN", needs_torch=True)
    own_labels = partial(_scan, self_label=True)
    yield Method("scan-self-label", "SCAN (self-labelling)", own_labels, needs_torch=True)
    yield Method("sic", "SIC", _sic, "SIC", needs_torch=True)
    yield Method("tac", "TAC (trained heads)", _tac_heads, needs_torch=True)
    yield Method("temi", "TEMI", _temi, needs_torch=True)
    yield Method("turtle", "TURTLE", _turtle, needs_torch=True)
    yield Method("ours", "Ours (RAD)", _ours, "Ours")
    naive, prompt_mean = (partial(_ours, ensemble=how) for how in ("average", "prompt_mean"))
    yield Method("ours-naive", "Ours (naive)", naive, "Ours (naive)")
    yield Method("ours-pe", "Ours (PE)", prompt_mean, "Ours (PE)")
    yield Method("ours-gradnorm", "Ours (GradNorm nouns)", _ours_with_gradnorm_nouns)
    yield Method("nouncut", "nouncut, the default", partial(_ours, **PRODUCT_DEFAULTS))
    for number in range(1, len(PROMPTS) + 1):
        yield from _prompt_methods(number)


def _kernel_methods(family: str, run: Callable[..., Labels]) -> Iterator[Method]:
    for kernel in KERNEL_NAMES:
        kernel_title = _KERNEL_TITLES.get(kernel, kernel.capitalize())
        yield Method(
            f"{family.lower()}-sc-{kernel}",
            f"{family} (SC, {kernel_title})",
            partial(run, kernel=kernel),
            # Outside its kernel table the paper calls RBF plainly SC.
            f"{family} (SC)" if kernel == "rbf" else kernel_title,
        )
    union = partial(run, kernel="rbf", neighbors="union", tau=None)
    yield Method(f"{family.lower()}-sc-rbf-union", f"{family} (SC, RBF, union)", union)


def _visual_methods() -> Iterator[Method]:
    yield Method("ssc-omp", "SSC-OMP", partial(_visual, cluster=ssc_omp))
    yield Method("ensc", "EnSC", partial(_visual, cluster=ensc))
    run = partial(_uncounted, cluster=evoc)
    yield Method("evoc", "EVoC (K found)", run, package="evoc")
    run = partial(_uncounted, cluster=umap_hdbscan)
    yield Method("umap-hdbscan", "UMAP + HDBSCAN (K found)", run, package="umap")


def _prompt_methods(number: int) -> Iterator[Method]:
    for name, title, run in (
        ("tac-kmeans", "TAC (KMeans)", partial(_tac_kmeans, prompt=number)),
        ("tac-sc-rbf", "TAC (SC)", partial(_tac_sc, kernel="rbf", prompt=number)),
        ("ours", "Ours", partial(_ours, prompt=number)),
    ):
        full_title = f"{title}, prompt {number}"
        yield Method(f"{name}-prompt-{number}", full_title, run, title, prompt=number)


METHODS: dict[str, Method] = {method.name: method for method in _all_methods()}
"""All methods by name, in the order of tables."""
