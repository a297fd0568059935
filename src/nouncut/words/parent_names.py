"""Names of groups of clusters: words of WordNet's tree that cover all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nouncut.words.backoff import ConceptTree, choose_nodes, concept_tree
from nouncut.words.cluster_names import numbered
from nouncut.words.concepts import choose_senses
from nouncut.words.queries import read_query
from nouncut.words.spelling import fold_word
from nouncut.words.wordnet import Synset, synsets_of

# Names that a list shows before it says how many more there are.
_LISTED = 2
_LIKE = "like "
_LIKES = re.compile(r"(?:.* \()?like (.+?)\)?")
_NUMBER = re.compile(r" \d+$")
_UNNAMED = re.compile(r"group \d+( \d+)?")


class ClusterSenses(NamedTuple):
    """The synsets that a cluster's name stands for, none if that is not known; a guess or not."""

    synsets: tuple[Synset, ...]
    guess: bool = False


class ParentName(NamedTuple):
    """A name for several clusters; without a synset it only lists some of their names."""

    name: str
    synset: Synset | None


def cluster_senses(name: str, gloss: str = "", *, guess: bool = False) -> ClusterSenses:
    """Return the synsets that a cluster's name stands for.

    A guess ("like hotdog, French loaf") stands for all of its words, another name for the synset
    with that gloss, and a name that a person gave for what it is about.
    """
    if guess:
        words = _words(name)
        senses = choose_senses(words, [1.0] * len(words))
        known = tuple(sense for sense in senses if sense is not None)
        return ClusterSenses(known if len(known) == len(senses) else (), guess=True)
    word = name.partition(f" ({_LIKE}")[0]
    for spelling in (word, _without_number(word)):
        if meant := [s for s in synsets_of(spelling) if gloss and s.definition == gloss]:
            return ClusterSenses(tuple(meant[:1]))
    if _UNNAMED.fullmatch(name):
        return ClusterSenses(())
    heads = tuple(head.senses[0] for head in read_query(word).heads)
    return ClusterSenses(synsets_of(word)[:1] or heads)


def name_parents(
    groups: Sequence[Sequence[int]],
    names: Sequence[str],
    senses: Sequence[ClusterSenses],
) -> list[ParentName]:
    """Name groups of clusters that have names and senses.

    Parameters
    ----------
    groups : sequence of sequence of int
        The clusters of every group, the most important ones first.
    names : sequence of str
        The names of the clusters.
    senses : sequence of ClusterSenses
        What `cluster_senses` returns for every cluster.

    Returns
    -------
    list of ParentName
        One per group: the most telling word that is at or above all senses of all clusters of the
        group. Groups that would share a word get others in brackets: "dog (beagle, whippet)". If a
        cluster has no sense, no word covers all, or most names are guesses, the name is a list:
        "dog, truck and 3 more".

    Examples
    --------
    >>> from nouncut.words.parent_names import cluster_senses, name_parents
    >>> names = ["beagle", "magpie", "robin", "truck"]
    >>> senses = [cluster_senses(name) for name in names]
    >>> for parent in name_parents([[0, 1, 2], [1, 2], [2, 3]], names, senses):
    ...     print(parent.name)
    animal
    bird
    robin, truck
    """
    tree, chosen = _covering_nodes(groups, senses)
    words = [tree.words[node] if node >= 0 else "" for node in chosen]
    found, taken = [], set[str]()
    for place, (group, word) in enumerate(zip(groups, words, strict=True)):
        outside = {fold_word(name) for c, name in enumerate(names) if c not in group}
        # Groups below have the word as well, but nothing that this one lacks.
        rivals = [
            rest
            for other, same in zip(groups, words, strict=True)
            if same == word and (rest := [cluster for cluster in other if cluster not in group])
        ]
        if not word:
            shown = _listed(group, names)
        elif rivals or fold_word(word) in outside:
            shown = _told_apart(word, group, rivals, names)
        else:
            shown = word
        shown = numbered(shown, taken) if fold_word(shown) in taken else shown
        taken.add(fold_word(shown))
        node = chosen[place]
        found.append(ParentName(shown, tree.synsets[node] if node >= 0 else None))
    return found


def _covering_nodes(
    groups: Sequence[Sequence[int]], senses: Sequence[ClusterSenses]
) -> tuple[ConceptTree, NDArray[np.intp]]:
    """Return the tree above all senses, and its best node for every group; -1 if none covers it."""
    concepts = list({one.id: one for found in senses for one in found.synsets}.values())
    row = {sense.id: number for number, sense in enumerate(concepts)}
    tree = concept_tree(concepts)
    above = tree.above.toarray() > 0
    covers = np.zeros((len(groups), len(tree.words)))
    for group, covered in zip(groups, covers, strict=True):
        children = [senses[cluster] for cluster in group]
        # No word was certain for a guess, so sure names must be at least as many.
        n_guesses = sum(child.guess for child in children)
        if all(child.synsets for child in children) and 2 * n_guesses <= len(children):
            rows = [row[sense.id] for child in children for sense in child.synsets]
            covered[:] = above[rows].all(axis=0)
    return tree, choose_nodes(covers, tree)


def _told_apart(
    word: str, group: Sequence[int], rivals: Sequence[Sequence[int]], names: Sequence[str]
) -> str:
    """Add words that are more frequent in a group than in others of the same name."""
    own = _shares(group, names)
    others = [_shares(rival, names) for rival in rivals]
    contrast = {
        one: share - max((other[one] for other in others), default=0.0)
        for one, share in own.items()
        if fold_word(one) != fold_word(word)
    }
    best = sorted(contrast, key=lambda one: -contrast[one])[:_LISTED]
    return f"{word} ({_enumerated(best, group, names)})" if best else word


def _shares(group: Sequence[int], names: Sequence[str]) -> Counter[str]:
    """Return the share of a group's clusters that every word describes."""
    counts = Counter(word for cluster in group for word in _words(names[cluster]))
    return Counter({word: count / len(group) for word, count in counts.items()})


def _words(name: str) -> list[str]:
    """Return the most specific words of a name: "jay" and "magpie" of "bird (like jay, magpie)"."""
    plain = _without_number(name)
    likes = _LIKES.fullmatch(plain)
    return [word.strip() for word in likes[1].split(",")] if likes else [plain]


def _without_number(name: str) -> str:
    """Return a name without the number that distinguishes it from an equal one."""
    return name if _UNNAMED.fullmatch(name) else _NUMBER.sub("", name) or name


def _listed(group: Sequence[int], names: Sequence[str]) -> str:
    # Numbers come last: they say less than any word.
    known = sorted((names[cluster] for cluster in group), key=lambda n: bool(_UNNAMED.fullmatch(n)))
    words = list(dict.fromkeys(_words(name)[0] for name in known))
    more = len(words) - _LISTED
    return _enumerated(words[:_LISTED], group, names) + (f" and {more} more" if more > 0 else "")


def _enumerated(words: Sequence[str], group: Sequence[int], names: Sequence[str]) -> str:
    """Join words; those that say only what a cluster looks like come last, after "like"."""
    named = {_without_number(names[cluster]) for cluster in group}
    sure = [word for word in words if word in named]
    guesses = [word for word in words if word not in named]
    return ", ".join([*sure, _LIKE + ", ".join(guesses)] if guesses else sure)
