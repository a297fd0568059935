"""What the client chooses from a sample of the images: how many clusters, nouns, temperature."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.compute.rows import Projection, unit_rows
from nouncut.distributed.cells import Coupling, read_sample
from nouncut.distributed.stages import Result
from nouncut.distributed.storage import Storage
from nouncut.method.count import ClusterCount, count_images
from nouncut.method.graphs import choose_neighbors
from nouncut.method.kernel import Kernel
from nouncut.method.trust import NounTrust, weigh_nouns
from nouncut.method.whitening import half_whitening
from nouncut.models.choose import ChosenEncoder
from nouncut.runs.collection import Collection, view_by_words
from nouncut.runs.grouping import chosen_weight, collection_kernel, count_groups
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.vocabulary import PositiveNouns, Vocabulary, choose_nouns

# Clusters are counted in this many images: their number is at most 256, so that even then each has
# about eighty of them.
_COUNTED = 20_000


@dataclass(frozen=True)
class Choices:
    """What was chosen, in types of JSON; noun features and the view are in files."""

    n_clusters: int
    n_neighbors: int
    coupling: dict[str, Any]
    words: list[str]
    count: dict[str, Any] | None = None
    trust: dict[str, Any] | None = None

    def nouns(self, storage: Storage) -> PositiveNouns | None:
        """Return the nouns that anchor the clustering, if any."""
        if not self.words:
            return None
        return PositiveNouns(self.words, list(storage.read("choices/nouns.npy")))

    @property
    def cluster_count(self) -> ClusterCount | None:
        """The number of clusters that was found, with others; None if it was given."""
        if self.count is None:
            return None
        candidates = tuple((int(k), float(score)) for k, score in self.count["candidates"])
        return ClusterCount(self.count["n_clusters"], candidates, self.count["confidence"])

    @property
    def noun_trust(self) -> NounTrust | None:
        """How far nouns are trusted; None if their weight was given."""
        return None if self.trust is None else NounTrust(**self.trust)


class Sampled(NamedTuple):
    """The sample as a collection, and the view of visual or semantic features, if any."""

    collection: Collection
    view: Projection | None


def make_choices(
    storage: Storage,
    n_shards: int,
    n_images: int,
    model: ChosenEncoder | None,
    vocabulary: Vocabulary | None,
    job: Job,
) -> Result:
    """Choose what the method needs to know before it sees all images."""
    collection, view = _collect_sample(storage, n_shards, model, vocabulary, job)
    if view is not None:
        storage.write_several("choices/view.npz", **view._asdict())
    n_clusters, count = job.settings.n_clusters, None
    if n_clusters == "auto":
        count = _count(_some(collection, _COUNTED), vocabulary, job)
        n_clusters = count.n_clusters
    nouns = choose_nouns(collection, vocabulary, n_clusters, job)
    kernel = collection_kernel(collection, nouns, job)
    rng = np.random.RandomState(job.settings.random_state)
    weight, trust = weigh_nouns(kernel, chosen_weight(collection, job), n_clusters, rng)
    if nouns is not None:
        storage.write("choices/nouns.npy", np.stack(kernel.prompts).astype(np.float32))
    coupling = Coupling(
        kernel.tau,
        weight,
        has_nouns=bool(weight),
        has_semantic=storage.size("semantic/00000.npy") is not None,
        has_view=view is not None,
        by_words=collection.word_view is not None,
    )
    asked = job.settings.n_neighbors
    chosen = Choices(
        n_clusters,
        choose_neighbors(n_images, n_clusters) if asked == "auto" else asked,
        coupling._asdict(),
        nouns.words if nouns else [],
        None if count is None else asdict(count),
        None if trust is None else trust._asdict(),
    )
    return asdict(chosen)


def _collect_sample(
    storage: Storage,
    n_shards: int,
    model: ChosenEncoder | None,
    vocabulary: Vocabulary | None,
    job: Job,
) -> Sampled:
    sample = read_sample(storage, n_shards)
    visual = sample["features"].astype(np.float32)
    semantic = sample.get("semantic")
    images = ImageSet(tuple(f"row {i}" for i in range(len(visual))), None, ())
    if model is None:
        return Sampled(Collection("features", images, visual, None), None)
    semantic = visual if semantic is None else semantic.astype(np.float32)
    if vocabulary is not None and job.settings.comparison == "words":
        by_words = view_by_words(semantic, vocabulary.features)
        seen = by_words(unit_rows(semantic))
        found = Collection("features", images, seen, semantic, word_view=by_words, model=model)
        return Sampled(found, by_words)
    view, lengths = None, None
    if model.encoder.whitens_visual:
        view = half_whitening(visual)
        visual, lengths = view(visual), view.lengths(visual)
    found = Collection("features", images, visual, semantic, (view,), lengths, model=model)
    return Sampled(found, view)


def _some(collection: Collection, most: int) -> Collection:
    """Return a collection of evenly spaced images."""
    if len(collection) <= most:
        return collection
    rows = np.linspace(0, len(collection) - 1, most).astype(np.intp)

    def part(array: NDArray[Any] | None) -> Any:
        return None if array is None else array[rows]

    images = ImageSet(tuple(collection.images.paths[i] for i in rows), None, ())
    return Collection(
        collection.source,
        images,
        part(collection.visual),
        part(collection.semantic),
        collection.views,
        part(collection.lengths),
        collection.word_view,
        collection.model,
    )


def _count(collection: Collection, vocabulary: Vocabulary | None, job: Job) -> ClusterCount:
    if vocabulary is not None:
        return count_groups(collection, vocabulary, job)
    kernel: Kernel = collection_kernel(collection, None, job)
    return count_images(kernel, random_state=job.settings.random_state, progress=job.progress)
