import pytest

from nouncut.errors import ParameterError
from nouncut.words.nouns import all_noun_words, load_nouns, noun_words
from nouncut.words.wordnet import LEXICONS, VISIBLE_LEXICONS, load_wordnet, word_senses


def words(nouns):
    return [noun.word for noun in nouns]


@pytest.mark.parametrize(("named_entities", "count"), [(True, 67_893), (False, 61_389)])
def test_distinct_first_words(named_entities, count):
    nouns = load_nouns(named_entities=named_entities)
    synsets = load_wordnet().values()
    kept = [synset for synset in synsets if named_entities or not synset.is_instance]
    assert words(nouns) == list(dict.fromkeys(synset.word for synset in kept))
    assert len(nouns) == count


def test_the_papers_vocabulary_is_all_of_wordnet():
    """TAC's list: 146,347 pairs of a word and a synset, of 119,034 spellings."""
    pairs = list(word_senses())
    assert len(pairs) == len({(word, id_) for word, _, id_ in pairs}) == 146_347
    everything = all_noun_words()
    assert len(everything) == len(set(everything)) == 119_034
    assert set(everything) == {word for word, _, _ in pairs}
    assert not any("_" in word for word in everything)
    assert {"car", "automobile", "Berlin", "tabby cat", "march", "March"} <= set(everything)


def test_named_entities_are_out_by_default():
    everything, default = set(words(load_nouns(named_entities=True))), set(words(load_nouns()))
    assert default < everything
    assert {"Berlin", "Einstein"} <= everything - default
    # A genus of plants, which is not a named entity, is called Paris as well.
    assert {"dog", "city", "Paris"} <= default


def test_nouns_have_their_most_frequent_sense_that_is_kept():
    by_rank = {}
    for synset in load_wordnet().values():
        for word, rank in zip(synset.words, synset.ranks, strict=True):
            if not synset.is_instance:
                by_rank.setdefault(word, {})[rank] = synset
    for noun in load_nouns():
        synset = by_rank[noun.word][min(by_rank[noun.word])]
        assert (noun.synset, noun.lexicon, noun.gloss) == (
            synset.id,
            synset.lexicon,
            synset.gloss,
        )


def test_senses_depend_on_the_lexicons():
    default, birds = (
        next(noun for noun in load_nouns(lexicons=lexicons) if noun.word == "crane")
        for lexicons in (None, ["animal"])
    )
    assert default.gloss.startswith("lifts and moves heavy objects")
    assert birds.gloss.startswith("large long-necked wading bird")


def test_lexicons_cover_the_nouns():
    by_lexicon = {name: load_nouns(lexicons=[name]) for name in LEXICONS}
    assert all(noun.lexicon == name for name, nouns in by_lexicon.items() for noun in nouns)
    union = {noun.word for nouns in by_lexicon.values() for noun in nouns}
    assert union == set(words(load_nouns()))
    both = load_nouns(lexicons={"food", "animal"})
    assert set(words(both)) == set(words(by_lexicon["food"])) | set(words(by_lexicon["animal"]))


def test_unknown_lexicon_lists_the_known_ones():
    problem = r"`lexicons` has unknown names: 'beast'. Choose among: Tops, act, .*time"
    with pytest.raises(ParameterError, match=problem):
        load_nouns(lexicons=["animal", "beast"])


def test_no_lexicon():
    with pytest.raises(ParameterError, match=r"`lexicons` is empty. Choose among: Tops"):
        load_nouns(lexicons=[])


@pytest.mark.parametrize("argument", ["lexicons", "stop_words"])
def test_one_text_is_no_list(argument):
    with pytest.raises(ParameterError, match=rf"`{argument}` must be a list, .* pass \['animal'\]"):
        load_nouns(**{argument: "animal"})


def test_stop_words():
    everything = words(load_nouns())
    left = words(load_nouns(stop_words=["DOG", "guide_dog", "persian cat", "no such word"]))
    assert left == [w for w in everything if w not in ("dog", "guide dog", "Persian cat")]
    assert len(everything) - len(left) == 3


@pytest.mark.parametrize("lexicons", [None, ["motive"], VISIBLE_LEXICONS], ids=str)
@pytest.mark.parametrize("named_entities", [True, False])
def test_words_alone_are_those_of_the_nouns(lexicons, named_entities):
    nouns = load_nouns(lexicons=lexicons, named_entities=named_entities)
    assert noun_words(lexicons=lexicons, named_entities=named_entities) == words(nouns)
