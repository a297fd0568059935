"""One call from a folder to a run."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from nouncut.compute.progress import Progress
from nouncut.compute.threads import count_threads
from nouncut.errors import InputError, OutputError, printable_path
from nouncut.images.find import ImageScan
from nouncut.layout.images import layout_images
from nouncut.method.count import ClusterCount
from nouncut.models.choose import ChosenEncoder
from nouncut.report.write import write_report
from nouncut.runs.collection import (
    Collection,
    ReadyFeatures,
    open_sources,
    original_images,
    read_collection,
    view_by_words,
)
from nouncut.runs.contents import (
    assignments_table,
    clusters_table,
    result_manifest,
    run_arrays,
    seen_files,
    texts_of,
)
from nouncut.runs.earlier import content_digest, earlier_run
from nouncut.runs.encode import FoundImages, missing_texts
from nouncut.runs.estimate import Estimate, estimate_run
from nouncut.runs.grouping import find_count, group_images, provisional_count
from nouncut.runs.manifest import read_manifest
from nouncut.runs.nouns import (
    PLAIN,
    Candidates,
    ChosenNouns,
    candidate_words,
    choose_nouns,
    encode_candidates,
)
from nouncut.runs.output import choose_output
from nouncut.runs.run import Run
from nouncut.runs.settings import VISIBLE_LEXICONS, Compared, Settings, Solver
from nouncut.runs.stages import Stages
from nouncut.runs.writer import RunContents, RunWriter
from nouncut.store.store import FeatureStore
from nouncut.words.filters import NounFilter
from nouncut.words.prompts import PROMPTS
from nouncut.words.word_lists import read_words

AnyPath = str | os.PathLike[str]


def cluster_images(
    paths: AnyPath | Iterable[AnyPath],
    n_clusters: int | Literal["auto"] = "auto",
    *,
    model: str = "auto",
    vocabulary: AnyPath | Sequence[str] | None = None,
    lexicons: Sequence[str] | None = VISIBLE_LEXICONS,
    templates: Sequence[str] = tuple(PROMPTS),
    tau: float | Literal["auto"] | None = None,
    n_neighbors: int | Literal["auto"] = "auto",
    seed: int = 0,
    solver: Solver = "auto",
    noun_filter: NounFilter | None = None,
    compare: Compared | None = None,
    output: AnyPath | None = None,
    replace: bool = False,
    store: FeatureStore | None = None,
    on_estimate: Callable[[Estimate], None] | None = None,
    progress: Progress | None = None,
    n_jobs: int | None = -1,
) -> Run:
    """Sort images into named groups.

    Whatever has been done before is not done again: features are kept, and a run of the same
    images with the same settings is returned as it is.

    Parameters
    ----------
    paths : path or iterable of path
        Folders, files, patterns and list files of images; or one file of ready-made features.
    n_clusters : int or "auto", default="auto"
        Number of clusters; "auto" finds it.
    model : str, default="auto"
        What `nouncut.models.choose.load_encoder` takes. For a file of features: the model that made
        them, without which nouns cannot be used.
    vocabulary : path or sequence of str, optional
        Your own words, or a file of them: images are grouped along what they tell apart.
    lexicons : sequence of str or None
        WordNet's lexicographer files to take nouns from, by default those of things that can be
        seen; None for all.
    templates : sequence of str
        Prompts, each with one ``{}``; the paper's seven by default.
    tau : float or "auto", optional
        Temperature of the softmax over nouns; by default the published 0.04 for CLIP, and "auto"
        for other models.
    n_neighbors : int or "auto", default="auto"
        Neighbours that every image keeps; "auto" is twice the root of the images per cluster, at
        most 30 (see `nouncut.method.graphs.choose_neighbors`).
    seed : int, default=0
        Seed of everything random.
    solver : {"auto", "exact", "spectral"}, default="auto"
        How to diffuse.
    noun_filter : {"tac", "gradnorm", "none"}, optional
        Which nouns are used; by default TAC's filter on WordNet, and all of your own words.
    compare : {"looks", "words"}, optional
        Whether images are close when they look alike, or when the words say the same of them; by
        default "words" with your own vocabulary, and "looks" otherwise.
    output : path, optional
        The run directory; by default one in the folder ``nouncut-runs`` here.
    replace : bool, default=False
        Whether a run in `output` that was made with other settings may be replaced.
    store : FeatureStore, optional
        Where features are kept; the user's cache by default.
    on_estimate : callable, optional
        Called with an `Estimate` before the long part.
    progress : callable, optional
        Called with the stage, the number done and of all.
    n_jobs : int, default=-1
        Threads; all cores by default. The result does not depend on it.

    Returns
    -------
    Run
        The finished run with its tables; it shows itself in a notebook.

    Raises
    ------
    nouncut.errors.InputError
        If there are no two images that can be opened.
    nouncut.errors.OutputError
        If the run cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from nouncut import cluster_images
    >>> from nouncut.paper.synthetic import make_clip_like
    >>> data = make_clip_like(n_images=300, n_clusters=3, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "clip.npy"), data.features)
    ...     run = cluster_images(Path(folder, "clip.npy"), 3, output=Path(folder, "run"))
    ...     run.clusters.select(["name", "size"]).to_pylist()
    [{'name': 'cluster 1', 'size': 100}, {'name': 'cluster 2', 'size': 100},
     {'name': 'cluster 3', 'size': 100}]
    """
    settings = Settings(
        n_clusters=None if n_clusters == "auto" else n_clusters,
        model=_named_model(model),
        words=_own_words(vocabulary),
        lexicons=None if lexicons is None else tuple(lexicons),
        templates=tuple(templates),
        tau=tau,
        n_neighbors=None if n_neighbors == "auto" else n_neighbors,
        seed=seed,
        solver=solver,
        noun_filter=noun_filter,
        compare=compare,
    )
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    sources = [os.path.abspath(path) for path in given]
    directory = _output(output, sources, settings, replace)
    job = _Job(sources, settings, store or FeatureStore(), on_estimate, progress, n_jobs)
    return job.write(directory)


class _Job:
    """One run in the making: what was asked for, and who wants to hear of it."""

    def __init__(
        self,
        sources: list[str],
        settings: Settings,
        store: FeatureStore,
        on_estimate: Callable[[Estimate], None] | None,
        progress: Progress | None,
        n_jobs: int | None,
    ) -> None:
        self.sources, self.settings, self.store = sources, settings, store
        self.on_estimate, self.progress, self.n_jobs = on_estimate, progress, n_jobs
        self.stages = Stages(progress)

    def write(self, directory: Path) -> Run:
        """Make the run, unless it is there already."""
        source = open_sources(self.sources)
        self._check_enough(len(source.names if isinstance(source, ReadyFeatures) else source.files))
        asked = self._asked()

        def begin(found: FoundImages, chosen: ChosenEncoder) -> None:
            # Not earlier: where a run cannot be made, the directory stays free for another.
            writer.start(asked)
            self._announce(found, chosen)

        with RunWriter(directory) as writer, _noted_warnings() as notes:
            collection = self._collect(source, begin)
            content = content_digest(collection, asked["digest"])
            made = earlier_run(directory, content, collection.n_encoded)
            if made is None:
                contents = self._contents(collection)
                about = {"content": content, "seconds": self.stages.seconds, "warnings": notes}
                contents.manifest.update(asked | about)
                made = writer.finish(contents)
        if not made.report.exists():
            write_report(made, progress=self.progress, n_jobs=self.n_jobs)
        return made

    def _asked(self) -> dict[str, Any]:
        return {
            "digest": self.settings.digest(self.sources),
            "command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]),
            "source": texts_of(tuple(self.sources)),
            "settings": self.settings.as_json(),
        }

    def _collect(
        self,
        source: ImageScan | ReadyFeatures,
        begin: Callable[[FoundImages, ChosenEncoder], None],
    ) -> Collection:
        with self.stages("encoding images"):
            collection = read_collection(
                source,
                self.settings.model,
                self.store,
                announce=begin,
                progress=self.progress,
                n_jobs=self.n_jobs,
            )
        self._check_enough(len(collection.paths))
        return collection

    def _check_enough(self, n_images: int) -> None:
        if n_images < 2:
            raise InputError(
                f"{printable_path(self.sources[0])} has one image that can be opened; two are the "
                "fewest that can be compared. Add images."
            )
        n_clusters = self.settings.n_clusters
        if n_clusters is not None and n_clusters > n_images:
            raise ValueError(
                f"{n_clusters:,} clusters cannot be made of {n_images:,} images: ask for fewer."
            )

    def _announce(self, found: FoundImages, chosen: ChosenEncoder) -> None:
        if self.on_estimate is None:
            return
        texts = missing_texts(candidate_words(self.settings), PLAIN, chosen.encoder, self.store)
        n_prompts = len(self.settings.templates)
        n_missing = len(found.missing)
        self.on_estimate(
            estimate_run(chosen.encoder, len(found.paths), n_missing, texts, n_prompts)
        )

    def _contents(self, collection: Collection) -> RunContents:
        settings, chosen = self.settings, collection.model
        candidates = self._candidates(collection)
        originals = original_images(collection)
        visual, semantic = collection.visual, collection.semantic
        extra: dict[str, Any] = {}
        if candidates is not None and semantic is not None and settings.compared_by == "words":
            view = view_by_words(semantic, candidates.features)
            visual, extra = view(semantic), {"view_center": view.center, "view_basis": view.basis}
        # Products of equal rows may differ in their last digits.
        visual = visual[originals]
        if semantic is not None:
            semantic = semantic[originals]
            collection = dataclasses.replace(collection, semantic=semantic)
        tau = self._tau(chosen)
        count = None
        if settings.n_clusters is None:
            with self.stages("counting clusters"):
                count = self._count(collection, visual, candidates, tau)
        n_clusters = count.n_clusters if count else settings.n_clusters or 1
        nouns = self._nouns(collection, candidates, n_clusters)
        with self.stages("clustering"):
            groups = group_images(
                visual,
                semantic,
                nouns,
                candidates,
                n_clusters,
                tau,
                settings,
                self.progress,
                self.n_jobs,
            )
        with self.stages("drawing the map"):
            extra["layout"] = layout_images(
                groups.model.embedding_,
                groups.model.graph_,
                groups.model.labels_,
                random_state=settings.seed,
                n_threads=count_threads(self.n_jobs),
            )
        with self.stages("writing the run"):
            manifest = result_manifest(collection, visual, groups, settings, count, self.n_jobs)
            manifest["source_kind"] = collection.source
            manifest["model"] = _model_fields(chosen)
            manifest["nouns"] = {
                "candidates": len(candidates.words) if candidates else 0,
                "words": nouns.words if nouns else [],
            }
            return RunContents(
                manifest=manifest,
                assignments=assignments_table(texts_of(collection.paths), groups),
                clusters=clusters_table(groups, collection.hashes),
                images=seen_files(collection),
                arrays=run_arrays(collection, visual, groups, extra),
            )

    def _candidates(self, collection: Collection) -> Candidates | None:
        if collection.model is None or collection.semantic is None:
            if self.settings.words is not None:
                raise ValueError(
                    "Words of your own need a model that can read them: name the one that made the "
                    "features with --model."
                )
            return None
        with self.stages("encoding nouns"):
            words = candidate_words(self.settings)
            return encode_candidates(words, collection.model.encoder, self.store, self.progress)

    def _nouns(
        self, collection: Collection, candidates: Candidates | None, n_clusters: int
    ) -> ChosenNouns | None:
        if candidates is None or collection.semantic is None or collection.model is None:
            return None
        with self.stages("choosing nouns"):
            return choose_nouns(
                candidates,
                collection.semantic,
                n_clusters,
                self.settings,
                collection.model.encoder,
                self.store,
                self.progress,
            )

    def _count(
        self,
        collection: Collection,
        visual: Any,
        candidates: Candidates | None,
        tau: float | None,
    ) -> ClusterCount:
        nouns = None
        encoder = collection.model and collection.model.encoder
        # Where meaning is only guessed from looks, looks alone count better.
        if encoder and (encoder.shares_space or self.settings.compared_by == "words"):
            nouns = self._nouns(collection, candidates, provisional_count(len(visual)))
        center = None if self.settings.compared_by == "words" else collection.center
        return find_count(
            visual, collection.semantic, nouns, tau, self.settings, center, self.n_jobs
        )

    def _tau(self, chosen: ChosenEncoder | None) -> float | None:
        if self.settings.tau == "auto":
            return None
        if self.settings.tau is None:
            return chosen.encoder.tau if chosen else None
        return self.settings.tau


def _named_model(model: str) -> str:
    """Return a model as it can be named in any folder."""
    folder = os.path.expanduser(model)
    is_folder = model not in ("auto", "mini") and os.path.isdir(folder)
    return os.path.abspath(folder) if is_folder else model


def _own_words(vocabulary: AnyPath | Sequence[str] | None) -> tuple[str, ...] | None:
    if vocabulary is None:
        return None
    if isinstance(vocabulary, str | os.PathLike):
        return tuple(read_words(vocabulary))
    return tuple(vocabulary)


def _output(output: AnyPath | None, sources: list[str], settings: Settings, replace: bool) -> Path:
    digest = settings.digest(sources)
    if output is None:
        return choose_output(Path(sources[0]).name, digest, Path.cwd())
    directory = Path(output)
    holds_run = (directory / "manifest.json").exists()
    if holds_run and not replace and read_manifest(directory).get("digest") != digest:
        raise OutputError(
            f"{printable_path(directory)} holds a run of other images or settings. Choose another "
            "--output, or say --replace."
        )
    return directory


def _model_fields(chosen: ChosenEncoder | None) -> dict[str, Any]:
    if chosen is None:
        reason = "Ready-made features: nouns were not used, because their model is not known."
        return {"name": None, "fingerprint": None, "embedded": False, "reason": reason}
    encoder = chosen.encoder
    return {
        "name": encoder.name,
        "fingerprint": encoder.fingerprint,
        "embedded": encoder.name == "mini",
        "reason": chosen.reason,
    }


@contextmanager
def _noted_warnings() -> Iterator[list[str]]:
    """Collect what the stages warn of, for the user to read afterwards."""
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("default")

        def note(message: Warning | str, category: type[Warning], *_: object) -> None:
            if issubclass(category, UserWarning) and str(message) not in notes:
                notes.append(str(message))

        warnings.showwarning = note  # type: ignore[assignment]
        yield notes
