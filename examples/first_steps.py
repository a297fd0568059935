"""Cluster made features that resemble CLIP's, then put new images into the clusters."""

from nouncut import NTKSpectralClustering
from nouncut.paper.scores import clustering_scores
from nouncut.paper.synthetic import make_clip_like

data = make_clip_like(n_images=1200, n_clusters=10, random_state=0)
seen, new = slice(0, 1000), slice(1000, 1200)

model = NTKSpectralClustering(n_clusters=10, tau="auto", random_state=0)
model.fit(data.features[seen], noun_features=data.noun_features)

print("accuracy:      ", clustering_scores(data.labels[seen], model.labels_).acc)
print("new images:    ", clustering_scores(data.labels[new], model.predict(data.features[new])).acc)
print("temperature:   ", f"{model.tau_:.4f}")
print("prompt weights:", model.prompt_weights_.round(3))
