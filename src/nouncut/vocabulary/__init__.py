"""Words: WordNet's nouns, users' own lists, prompts, and the nouns that suit some images."""

from nouncut.vocabulary.filters import (
    NounFilter,
    count_centers,
    image_centers,
    mean_prompt_features,
    positive_nouns,
    select_nouns,
)
from nouncut.vocabulary.leakage import remove_class_names
from nouncut.vocabulary.nouns import Noun, load_nouns
from nouncut.vocabulary.prompts import PROMPTS, check_templates, fill_template, read_templates
from nouncut.vocabulary.word_lists import MAX_WORD_LENGTH, read_words
from nouncut.vocabulary.wordnet import (
    LEXICONS,
    Synset,
    hypernym_path,
    hypernym_steps,
    load_wordnet,
    synonyms,
    synsets_of,
)

__all__ = [
    "LEXICONS",
    "MAX_WORD_LENGTH",
    "PROMPTS",
    "Noun",
    "NounFilter",
    "Synset",
    "check_templates",
    "count_centers",
    "fill_template",
    "hypernym_path",
    "hypernym_steps",
    "image_centers",
    "load_nouns",
    "load_wordnet",
    "mean_prompt_features",
    "positive_nouns",
    "read_templates",
    "read_words",
    "remove_class_names",
    "select_nouns",
    "synonyms",
    "synsets_of",
]
