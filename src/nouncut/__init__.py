"""Sort unlabelled images into meaningful groups: spectral clustering anchored by nouns."""

from nouncut.estimator import NTKSpectralClustering

__all__ = ["NTKSpectralClustering", "__version__"]
__version__ = "0.1.0"
