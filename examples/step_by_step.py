"""The steps of `nouncut cluster` one by one.

Run ``python step_by_step.py FOLDER CLUSTERS``. To take nouns from some of WordNet's lexicographer
files only, name them: ``python step_by_step.py FOLDER 12 animal plant``.
"""

import sys

from nouncut import NTKSpectralClustering, encode_images, encode_nouns
from nouncut.compute.progress import ProgressLine
from nouncut.errors import printable_path
from nouncut.models.choose import load_encoder
from nouncut.words.filters import positive_nouns
from nouncut.words.nouns import load_nouns
from nouncut.words.prompts import PROMPTS
from nouncut.words.wordnet import VISIBLE_LEXICONS

folder, n_clusters, lexicons = sys.argv[1], int(sys.argv[2]), sys.argv[3:] or VISIBLE_LEXICONS
encoder = load_encoder("mini").encoder
progress = ProgressLine()
images = encode_images(folder, encoder, progress=progress)
for file in images.skipped:
    print(f"skipped {printable_path(file.path)}: {file.reason}", file=sys.stderr)
vocabulary = [noun.word for noun in load_nouns(lexicons=lexicons)]
vocabulary_features = encode_nouns(vocabulary, ["{}"], encoder, progress=progress)
chosen = positive_nouns(images.semantic(), vocabulary_features, n_clusters)
nouns = [vocabulary[i] for i in chosen]
model = NTKSpectralClustering(n_clusters, tau="auto", random_state=0).fit(
    images.visual(),
    semantic_features=images.semantic(),
    noun_features=encode_nouns(nouns, PROMPTS, encoder),
    nouns=nouns,
)
for path, label in zip(images.paths, model.labels_, strict=True):
    print(label, path)
