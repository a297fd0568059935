from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from nouncut.compute.rows import unit_rows
from nouncut.words.cluster_names import assign_names, name_clusters
from nouncut.words.nouns import load_nouns
from nouncut.words.wordnet import hypernym_path, synsets_of

SUBJECTS = ["parachute", "violin", "lemon", "tractor", "lighthouse", "elephant", "clock", "sofa"]
N_FEATURES = 128


@pytest.fixture(scope="module")
def vocabulary():
    """Return 4,000 nouns and features that are close for words that are close in WordNet."""
    words = [noun.word for noun in load_nouns(lexicons=["animal", "artifact", "food"])][::4]
    words = list(dict.fromkeys([*SUBJECTS, *words]))[:4000]
    directions: dict[str, np.ndarray] = {}
    rng = np.random.default_rng(12345)
    rows = []
    for word in words:
        own = rng.normal(size=N_FEATURES)
        for steps, synset in enumerate(hypernym_path(synsets_of(word)[0])[:4]):
            direction = directions.setdefault(synset.id, rng.normal(size=N_FEATURES))
            own = own + direction * 0.8**steps
        rows.append(own)
    return words, unit_rows(np.array(rows))


def collection(vocabulary, subjects, n_each=30, noise=0.12, seed=0):
    """Return images close to the features of subjects, plus a part that all images share."""
    words, features = vocabulary
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(subjects)), n_each)
    centers = features[[words.index(subject) for subject in subjects]]
    shared = unit_rows(rng.normal(size=(1, N_FEATURES)))
    images = centers[labels] + 0.5 * shared + noise * rng.normal(size=(len(labels), N_FEATURES))
    return labels, images


def test_clusters_are_named_by_their_subjects(vocabulary):
    labels, images = collection(vocabulary, SUBJECTS)
    names = name_clusters(labels, images, *vocabulary)
    assert [name.name for name in names] == SUBJECTS
    for name in names:
        assert len(name.more_words) == len(set(name.more_words)) == 3
        assert name.name not in name.more_words
        assert name.confidence > 0
    assert names[0].gloss.startswith("rescue equipment")
    assert '"' not in names[2].gloss


@pytest.mark.parametrize("seed", range(3))
def test_names_stay_when_a_tenth_of_the_images_goes(vocabulary, seed):
    rng = np.random.default_rng(seed)
    subjects = [vocabulary[0][i] for i in rng.choice(4000, size=30, replace=False)]
    labels, images = collection(vocabulary, subjects, noise=0.3, seed=seed)
    before = name_clusters(labels, images, *vocabulary)
    left = rng.random(len(labels)) > 0.1
    after = name_clusters(labels[left], images[left], *vocabulary)
    kept = sum(one.name == other.name for one, other in zip(before, after, strict=True))
    assert kept >= 28
    assert before == name_clusters(labels, images, *vocabulary)


def test_names_follow_the_clusters_when_labels_are_permuted(vocabulary):
    labels, images = collection(vocabulary, SUBJECTS)
    order = np.random.default_rng(1).permutation(len(SUBJECTS))
    names = name_clusters(order[labels], images, *vocabulary)
    assert [names[order[c]].name for c in range(len(SUBJECTS))] == SUBJECTS


def test_what_every_image_shows_names_no_cluster():
    nouns, features = ["grass", "cow", "sheep"], np.eye(3)
    images = np.array([[1.0, 0.8, 0.0]] * 5 + [[1.0, 0.0, 0.8]] * 5)
    names = name_clusters([0] * 5 + [1] * 5, images, nouns, features)
    assert [name.name for name in names] == ["cow", "sheep"]


def test_many_breeds_get_a_broader_name_and_one_breed_its_own():
    breeds = ["beagle", "basset", "bloodhound", "whippet", "Saluki", "Scottish deerhound"]
    nouns = [*breeds, "hound", "piano"]
    features = np.eye(8)
    features[6, :6] = 0.5
    features = unit_rows(features)
    piano = np.tile(features[7], (6, 1))
    labels = [0] * 6 + [1] * 6
    mixed = name_clusters(labels, np.vstack([np.eye(8)[:6], piano]), nouns, features)
    single = name_clusters(labels, np.vstack([np.eye(8)[[0] * 6], piano]), nouns, features)
    assert (mixed[0].name, single[0].name) == ("hound", "beagle")


def test_synonyms_do_not_name_two_clusters():
    nouns = ["car", "automobile", "truck"]
    features = np.array([[1.0, 0.0, 0.0], [0.9, 0.4, 0.0], [0.5, 0.5, 0.7]])
    images = np.vstack([features[[0] * 4], features[[1] * 4]])
    first, second = name_clusters([0] * 4 + [1] * 4, images, nouns, features)
    assert (first.name, second.name) == ("car", "car 2")
    assert first.more_words == second.more_words == ()


def test_common_words_are_preferred_over_latin():
    nouns, features = ["Tinca", "tench", "piano"], np.eye(3)
    features[0, 1] = features[1, 0] = 0.9
    images = np.array([[1.0, 0.97, 0.0]] * 4 + [[0.0, 0.0, 1.0]] * 4)
    names = name_clusters([0] * 4 + [1] * 4, images, nouns, features)
    assert [name.name for name in names] == ["tench", "piano"]


def test_words_that_wordnet_lacks_are_names_too():
    nouns = ["Oatghurt", "Filmjölk", "lemon"]
    names = name_clusters([0, 0, 1, 1, 2], np.eye(3)[[0, 0, 1, 1, 2]], nouns, np.eye(3))
    assert [name.name for name in names] == nouns
    assert [bool(name.gloss) for name in names] == [False, False, True]


def test_names_are_numbered_when_nouns_run_out():
    images = np.array([[1.0, 0.1]] * 3 + [[1.0, 0.0]] * 3 + [[0.9, 0.1]] * 3 + [[0.0, 1.0]] * 3)
    labels = np.repeat([0, 1, 2, 3], 3)
    names = [n.name for n in name_clusters(labels, images, ["dog", "cat"], np.eye(2), tau=0.5)]
    assert sorted(names) == ["cat", "dog", "dog 2", "dog 3"]
    assert names[3] == "cat"
    assert names[1] == "dog"


def test_numbered_names_do_not_collide_with_words():
    images = np.array([[1.0, 0.0]] * 3 + [[1.0, 0.01]] * 3 + [[0.0, 1.0]] * 3)
    nouns = ["dog", "dog 2"]
    labels = np.repeat([0, 1, 2], 3)
    names = [n.name for n in name_clusters(labels, images, nouns, np.eye(2), tau=0.05)]
    assert sorted(names) == ["dog", "dog 2", "dog 3"]


@pytest.mark.parametrize(
    ("images", "name", "more_words"),
    [([[1.0, 0.1], [1.0, 0.0]], "dog", ()), ([[1.0, 0.7], [1.0, 0.5]], "wolf", ("dog",))],
)
def test_one_cluster_is_named_by_probability(images, name, more_words):
    features = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    (found,) = name_clusters([0, 0], images, ["dog", "wolf", "car"], features)
    assert (found.name, found.more_words) == (name, more_words)


def test_no_nouns_and_clusters_without_images_are_numbered():
    assert [n.name for n in name_clusters([0, 1], np.eye(2), [], [])] == ["group 0", "group 1"]
    images = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    names = name_clusters([0, 1, 3, -1], images, ["dog", "car"], np.eye(2))
    assert [name.name for name in names] == ["dog", "group 1", "group 2", "car"]
    assert names[1].confidence == 0
    assert name_clusters([], np.empty((0, 2)), ["dog"], np.eye(2)[:1]) == []


def test_duplicates_count_once_and_prefer_lower_case():
    nouns = ["Dog", "dog", "dog", "car"]
    features = np.eye(2)[[0, 0, 0, 1]]
    names = name_clusters([0, 0, 1], np.eye(2)[[0, 0, 1]], nouns, features)
    assert [(name.name, name.more_words) for name in names] == [("dog", ()), ("car", ())]


def test_other_spellings_are_no_further_words():
    nouns = ["hot dog", "hot-dogs", "hotdogs", "piano"]
    features = np.eye(2)[[0, 0, 0, 1]]
    first, _ = name_clusters([0, 0, 1], np.eye(2)[[0, 0, 1]], nouns, features)
    assert first.more_words == ()


def test_prompts_are_averaged_and_n_more_is_kept():
    nouns = ["dog", "wolf", "fox", "car"]
    features = np.array([[1.0, 0.1, 0], [1, 0.2, 0], [1, 0.3, 0], [0, 0, 1]])
    images = features[[0, 0, 3]]
    one = name_clusters([0, 0, 1], images, nouns, features, n_more=1)
    assert one == name_clusters([0, 0, 1], images, nouns, [features, 2 * features], n_more=1)
    assert len(one[0].more_words) == 1
    assert name_clusters([0, 0, 1], images, nouns, features, n_more=0)[0].more_words == ()


@pytest.mark.parametrize("seed", range(5))
def test_no_other_assignment_has_a_larger_product(seed):
    scores = np.random.default_rng(seed).uniform(0.2, 1, size=(4, 6))
    found = assign_names(scores)
    best = max(np.prod(scores[range(4), list(columns)]) for columns in permutations(range(6), 4))
    assert np.prod(scores[range(4), found]) == pytest.approx(best)


def test_a_strong_cluster_does_not_cost_a_weak_one_its_name():
    # The sum of scores would give name 0 to the first cluster, whose second choice is as good.
    scores = np.array([[9.0, 8.0], [0.9, 0.02]])
    assert assign_names(scores).tolist() == [1, 0]


def test_ties_go_to_the_better_fit():
    assert assign_names(np.array([[0.5], [0.7], [0.6]])).tolist() == [-1, 0, -1]
    assert assign_names(np.array([[0.7], [0.5]])).tolist() == [0, -1]


def test_names_that_do_not_fit_are_not_assigned():
    scores = np.array([[0.5, 0.001], [0.4, 0.0]])
    assert assign_names(scores).tolist() == [0, -1]


@pytest.mark.parametrize("shape", [(3, 0), (2, 5)])
def test_without_evidence_there_are_no_names(shape):
    assert (assign_names(np.zeros(shape)) == -1).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [0]}, "`semantic_features` has 2 rows, but `labels` has 1"),
        ({"labels": [0.5, 1.0]}, "`labels` must be a list of whole numbers"),
        ({"nouns": ["dog"]}, "`nouns` has 1 words"),
        ({"noun_features": np.eye(3)[:2]}, "3 columns, but `semantic_features` has 2"),
        ({"tau": 0}, "`tau` must be"),
        ({"n_more": -1}, "`n_more` must be"),
        ({"semantic_features": [[np.nan, 0], [0, 1]]}, "NaN"),
    ],
)
def test_bad_input(changes, message):
    arguments = {
        "labels": [0, 1],
        "semantic_features": np.eye(2),
        "nouns": ["dog", "car"],
        "noun_features": np.eye(2),
    }
    with pytest.raises(ValueError, match=message):
        name_clusters(**(arguments | changes))
