"""The steps of `nouncut cluster` one by one: python step_by_step.py FOLDER CLUSTERS."""

import sys

from nouncut import NTKSpectralClustering, encode_images, encode_nouns
from nouncut.encoders import load_encoder
from nouncut.images import printable_path
from nouncut.progress import ProgressLine
from nouncut.vocabulary import PROMPTS, load_nouns, positive_nouns

folder, n_clusters = sys.argv[1], int(sys.argv[2])
encoder = load_encoder("mini").encoder
progress = ProgressLine()
images = encode_images(folder, encoder, progress=progress)
for file in images.skipped:
    print(f"skipped {printable_path(file.path)}: {file.reason}", file=sys.stderr)
words = [noun.word for noun in load_nouns(lexicons=["animal", "food"])]
candidates = encode_nouns(words, ["{}"], encoder, progress=progress)
nouns = [words[i] for i in positive_nouns(images.semantic(), candidates, n_clusters)]
model = NTKSpectralClustering(n_clusters, tau="auto", random_state=0).fit(
    images.visual(),
    semantic_features=images.semantic(),
    noun_features=encode_nouns(nouns, PROMPTS, encoder),
    nouns=nouns,
)
for path, label in zip(images.paths, model.labels_, strict=True):
    print(label, path)
