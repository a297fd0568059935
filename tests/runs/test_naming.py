from __future__ import annotations

import numpy as np
import pytest

from nouncut.compute.rows import unit_rows
from nouncut.models.choose import ChosenEncoder, load_encoder
from nouncut.models.encoder import Encoder
from nouncut.runs.collection import Collection
from nouncut.runs.image_set import ImageSet
from nouncut.runs.job import Job
from nouncut.runs.naming import name_groups
from nouncut.runs.settings import Settings
from nouncut.runs.vocabulary import Vocabulary
from nouncut.store.store import FeatureStore
from nouncut.words.nouns import noun_words
from nouncut.words.wordnet import broader_synsets, hypernym_path, load_wordnet, synsets_of

N_FEATURES = 256
BREEDS = ("beagle", "basset", "bloodhound", "whippet", "Saluki", "toy poodle")


class ClipLike(Encoder):
    """An encoder in whose space images are about as close to nouns as in CLIP's."""

    name, fingerprint, image_dim, text_dim, tau = "clip", "clip-1", N_FEATURES, N_FEATURES, 0.04

    def prepare(self, image):
        raise NotImplementedError

    def encode_prepared(self, batch):
        raise NotImplementedError

    def encode_texts(self, texts):
        raise NotImplementedError


@pytest.fixture(scope="module")
def vocabulary():
    """Return nouns with features that are close for words that are close in WordNet."""
    words = list(dict.fromkeys([*BREEDS, "lemon", "tractor", *noun_words(lexicons=["food"])]))
    rng = np.random.default_rng(0)
    directions: dict[str, np.ndarray] = {}
    rows = []
    for word in words:
        row = rng.normal(size=N_FEATURES)
        for steps, synset in enumerate(hypernym_path(synsets_of(word)[0])[:4]):
            direction = directions.setdefault(synset.id, rng.normal(size=N_FEATURES))
            row = row + direction * 0.8**steps
        rows.append(row)
    return Vocabulary(words, unit_rows(np.array(rows, dtype=np.float32)))


def images_of(vocabulary, words, rng):
    """Return images with cosines of about 0.3 to their nouns, far from all texts."""
    shift = unit_rows(np.random.default_rng(1).normal(size=(1, N_FEATURES)))
    nouns = vocabulary.features[[vocabulary.words.index(word) for word in words]]
    noise = unit_rows(rng.normal(size=nouns.shape))
    return (0.3 * nouns + 0.9 * shift + 0.1 * noise).astype(np.float32)


def name(labels, semantic, nouns, encoder, store, rows=None, **settings):
    collection = Collection(
        "features",
        ImageSet(tuple(map(str, range(len(labels)))), None, ()),
        semantic,
        semantic,
        model=ChosenEncoder(encoder, ""),
        rows=rows,
    )
    job = Job(Settings(**settings), store)
    return name_groups(labels, int(labels.max()) + 1, collection, nouns, job)


def test_a_model_that_was_trained_on_words_names_by_nouns(vocabulary, store):
    rng = np.random.default_rng(0)
    words = ["lemon"] * 20 + ["tractor"] * 20 + list(BREEDS) * 4
    labels = np.repeat([0, 1, 2], [20, 20, 24])
    names = name(labels, images_of(vocabulary, words, rng), vocabulary, ClipLike(), store)
    assert [one.name for one in names[:2]] == ["lemon", "tractor"]
    assert not any(one.guess for one in names)
    assert all(one.confidence > 0.85 for one in names)
    # No breed has all the evidence, but all of them are below the name.
    assert names[2].name not in BREEDS
    (meant,) = [s for s in synsets_of(names[2].name) if s.definition == names[2].gloss]
    assert all(meant.id in broader_synsets(synsets_of(breed)[:1]) for breed in BREEDS)
    assert set(names[2].more_words) <= set(BREEDS)


def test_images_unlike_every_noun_are_not_named(vocabulary, store):
    rng = np.random.default_rng(0)
    nothing = unit_rows(rng.normal(size=(20, N_FEATURES))).astype(np.float32)
    lemons = images_of(vocabulary, ["lemon"] * 20, rng)
    labels = np.repeat([0, 1], 20)
    first, second = name(labels, np.vstack([nothing, lemons]), vocabulary, ClipLike(), store)
    assert first.guess or first.confidence == 0
    assert second.name == "lemon"


def test_a_classifier_names_by_its_classes(vocabulary, store):
    encoder = load_encoder("mini", device="cpu").encoder
    words = [load_wordnet()[id_].word for id_ in encoder.known_synsets()]
    wanted = [words.index("tench"), words.index("golf ball")]
    bias = encoder.synset_probabilities(np.zeros((1, encoder.image_dim), np.float32))
    assert bias.sum() == pytest.approx(1, abs=1e-4)
    labels = np.repeat([0, 1], 5)
    rows = features_of_classes(encoder, [wanted[label] for label in labels])
    semantic = encoder.semantic(rows)
    names = name(labels, semantic, vocabulary, encoder, store, rows=rows.__getitem__)
    assert [one.name for one in names] == ["tench", "golf ball"]
    assert names[0].gloss.startswith("freshwater")


def features_of_classes(encoder, classes):
    """Return rows that the classifier is sure of."""
    dim = encoder.image_dim
    zero = np.log(encoder.synset_probabilities(np.zeros((1, dim), np.float32)))
    # The softmax hides a constant per row, which does not matter here.
    slopes = np.log(encoder.synset_probabilities(np.eye(dim, dtype=np.float32))) - zero
    centred = slopes - slopes.mean(axis=1, keepdims=True)
    logits = 12 * np.eye(1000)[classes]
    logits -= logits.mean(axis=1, keepdims=True)
    return np.linalg.lstsq(centred.T.astype(float), logits.T)[0].T.astype(np.float32)


def test_own_words_are_the_only_names(vocabulary, store):
    rng = np.random.default_rng(0)
    images = images_of(vocabulary, ["beagle"] * 10 + ["lemon"] * 10, rng)
    own = Vocabulary(["lemon", "whippet"], vocabulary.features[[6, 3]])
    assert vocabulary.words[6] == "lemon"
    labels = np.repeat([0, 1], 10)
    names = name(labels, images, own, ClipLike(), store, vocabulary=("lemon", "whippet"))
    assert [one.name for one in names] == ["whippet", "lemon"]


def test_without_words_groups_are_numbered(vocabulary, tmp_path):
    names = name(
        np.array([0, 1]),
        np.eye(2, N_FEATURES, dtype=np.float32),
        None,
        ClipLike(),
        FeatureStore(tmp_path / "store"),
    )
    assert [(one.name, one.confidence, one.guess) for one in names] == [
        ("group 0", 0.0, False),
        ("group 1", 0.0, False),
    ]
