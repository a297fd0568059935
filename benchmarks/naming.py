"""Names of clusters on folders of labelled photographs, compared with the names of the classes.

Run ``python benchmarks/naming.py FOLDER [FOLDER ...]``; each folder has one sub-folder per class.
Images are clustered by their looks, with the number of classes given and found. Class names are
used for scores only. A name is right if it is the cluster's most frequent class, a synonym, or an
ancestor of it in WordNet; a guess ("like hotdog") and a number ("group 7") name nothing. The
information of right names is in bits: 16 for one kind of dog, 9 for "dog", 4 for "animal". Rows
"0.1.0" show the names that version 0.1.0 gave, from all visible nouns. "Kept" is the share of names
that stay when 2 % of the images are left out of the same clusters.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from _setting import print_result, setting
from nouncut import NTKSpectralClustering, encode_images, encode_nouns
from nouncut.models.choose import load_encoder
from nouncut.models.encoder import Encoder
from nouncut.words.backoff import CLASSIFIER
from nouncut.words.cluster_names import ClusterName, name_clusters
from nouncut.words.concept_names import name_by_concepts
from nouncut.words.evidence import gather_evidence
from nouncut.words.lookup import find_senses
from nouncut.words.nouns import noun_words
from nouncut.words.spelling import fold_word
from nouncut.words.tree import information_bits
from nouncut.words.wordnet import (
    VISIBLE_LEXICONS,
    Synset,
    broader_synsets,
    load_wordnet,
    synset_rows,
    synsets_of,
    word_senses,
)

N_DROPS = 5
DROPPED = 0.02
_PHYSICAL = synsets_of("physical entity")[0].id
# "Kiwi" is a fruit or a bird here, not a New Zealander.
_PERSON = synsets_of("person")[0].id

Namer = Callable[[NDArray[np.intp], NDArray[np.intp]], list[ClusterName]]


class Photographs:
    """The images of a folder, their classes, and ways to name their clusters."""

    def __init__(self, folder: Path, encoder: Encoder) -> None:
        images = encode_images(folder, encoder)
        self.classes = np.array([path.parent.name for path in images.paths])
        self.visual, self.semantic = images.visual(), images.semantic()
        self.probabilities = encoder.synset_probabilities(images.rows(np.arange(len(images.paths))))
        self.concepts = [load_wordnet()[id_] for id_ in encoder.known_synsets()]
        self.words = noun_words(lexicons=VISIBLE_LEXICONS)
        self.features = encode_nouns(self.words, ["{}"], encoder)[0]

    def labels(self, n_clusters: int | Literal["auto"]) -> NDArray[np.intp]:
        model = NTKSpectralClustering(n_clusters, random_state=0, n_jobs=-1)
        return np.asarray(model.fit_predict(self.visual), dtype=np.intp)

    def by_concepts(self, labels: NDArray[np.intp], kept: NDArray[np.intp]) -> list[ClusterName]:
        probabilities = self.probabilities[kept]
        evidence = gather_evidence(
            labels, int(labels.max()) + 1, len(self.concepts), probabilities.__getitem__
        )
        return name_by_concepts(evidence, self.concepts, calibration=CLASSIFIER)

    def by_list(self, labels: NDArray[np.intp], kept: NDArray[np.intp]) -> list[ClusterName]:
        names = name_clusters(labels, self.semantic[kept], self.words, self.features)
        # Version 0.1.0 marked no guesses.
        return [replace(name, guess=False) for name in names]


@cache
def class_senses(class_name: str) -> tuple[Synset, ...]:
    """Return the senses of a class that a photograph can show."""
    words = fold_word(class_name.replace("-", " ")).split()
    ends = ["".join(words[first:]) for first in range(len(words))]
    joined = next((_joined_words()[end] for end in ends if end in _joined_words()), [])
    table = load_wordnet()
    senses = synsets_of(" ".join(words)) or tuple(table[id_] for id_ in joined)
    senses = senses or find_senses(class_name)
    seen = tuple(sense for sense in senses if _is_thing(sense))
    return seen or senses


def _is_thing(sense: Synset) -> bool:
    above = broader_synsets([sense])
    return _PHYSICAL in above and _PERSON not in above and not sense.is_instance


@cache
def _joined_words() -> dict[str, list[str]]:
    """Return synsets by words without spaces: "Whip_poor_Will" is "whippoorwill"."""
    found: dict[str, list[str]] = {}
    for word, _, id_ in word_senses():
        key = fold_word(word).replace("'s", "").replace("-", "").replace(" ", "")
        for spelling in (key, f"{key}s"):
            found.setdefault(spelling, []).append(id_)
    return found


def judge(name: ClusterName, class_name: str) -> tuple[str, float]:
    """Return "exact", "right", "wrong" or "unnamed", and the information of a right name."""
    if name.guess or not name.confidence:
        return "unnamed", 0.0
    # The gloss tells which sense is meant.
    word = name.name.partition(" (like")[0]
    meant = {s.id for s in synsets_of(word) if s.definition == name.gloss}
    senses = class_senses(class_name)
    above = broader_synsets(senses)
    right = [id_ for id_ in meant if id_ in above]
    if not right:
        return "wrong", 0.0
    bits = float(information_bits()[synset_rows(right)].max())
    return "exact" if meant & {sense.id for sense in senses} else "right", bits


def score(data: Photographs, labels: NDArray[np.intp], namer: Namer) -> dict[str, Any]:
    everything = np.arange(len(labels))
    start = time.perf_counter()
    names = namer(labels, everything)
    seconds = time.perf_counter() - start
    found = [judge(name, majority(data.classes[labels == c])) for c, name in enumerate(names)]
    verdicts = [verdict for verdict, _ in found]
    bits = [information for verdict, information in found if verdict in ("exact", "right")]
    return {
        "clusters": len(names),
        "exact": verdicts.count("exact"),
        "broader": verdicts.count("right"),
        "wrong": verdicts.count("wrong"),
        "unnamed": verdicts.count("unnamed"),
        "bits of right names": round(float(np.mean(bits)), 1) if bits else None,
        "% kept": round(100 * share_kept(labels, names, namer), 1),
        "seconds": round(seconds, 2),
    }


def majority(classes: NDArray[Any]) -> str:
    found, counts = np.unique(classes, return_counts=True)
    return str(found[counts.argmax()])


def share_kept(labels: NDArray[np.intp], names: Sequence[ClusterName], namer: Namer) -> float:
    shares = []
    for seed in range(N_DROPS):
        kept = np.flatnonzero(np.random.default_rng(seed).random(len(labels)) > DROPPED)
        again = namer(labels[kept], kept)
        shares.append(np.mean([a.name == b.name for a, b in zip(names, again, strict=False)]))
    return float(np.mean(shares))


def table(data: Photographs, labels: NDArray[np.intp]) -> list[dict[str, Any]]:
    rows = []
    for cluster, name in enumerate(data.by_concepts(labels, np.arange(len(labels)))):
        classes = data.classes[labels == cluster]
        usual = majority(classes)
        rows.append(
            {
                "majority class": usual,
                "share": round(float((classes == usual).mean()), 2),
                "name": name.name,
                "confidence": round(name.confidence, 2),
                "verdict": judge(name, usual)[0],
                "more words": ", ".join(name.more_words),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with a folder per class")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    encoder = load_encoder("mini").encoder
    result = setting("scikit-learn")
    for folder in arguments.folders:
        data = Photographs(folder, encoder)
        title = f"{folder.name}: {len(data.classes)} images"
        rows = []
        numbers: dict[str, int | Literal["auto"]] = {
            "given": len(set(data.classes)),
            "found": "auto",
        }
        for number, n_clusters in numbers.items():
            labels = data.labels(n_clusters)
            for namer, title_of in ((data.by_concepts, "backed off"), (data.by_list, "0.1.0")):
                rows.append({"number": number, "names": title_of, **score(data, labels, namer)})
            if number == "given":
                result[f"{title}, number of clusters given"] = table(data, labels)
        result[title] = rows
    print_result(result, arguments.json)


if __name__ == "__main__":
    main()
