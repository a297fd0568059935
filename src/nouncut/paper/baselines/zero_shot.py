"""Zero-shot classification: what knowing the classes' names is worth."""

from __future__ import annotations

from typing import Self

from numpy.typing import ArrayLike

from nouncut.paper.baselines.kmeans import nearest_centers
from nouncut.paper.baselines.method import Baseline, unit_array


class ZeroShot(Baseline):
    """Give every image to the class whose name it is closest to.

    Not a way of clustering: it is told the classes. Tables show it for comparison.

    Attributes
    ----------
    labels_ : ndarray of shape (n_images,)
        Row of `class_features` for every image.

    Examples
    --------
    >>> from nouncut.paper.baselines.zero_shot import ZeroShot
    >>> ZeroShot().fit_predict([[0.9, 0.1], [0.2, 3.0]], class_features=[[2, 0], [0, 1]])
    array([0, 1])
    """

    def fit(self, X: ArrayLike, y: object = None, *, class_features: ArrayLike) -> Self:
        """Classify images.

        Parameters
        ----------
        X : array-like of shape (n_images, e)
            Image features in the space of texts.
        y : ignored
            Not used, present for scikit-learn's API.
        class_features : array-like of shape (n_classes, e)
            Features of the classes' names.

        Returns
        -------
        ZeroShot
            The fitted estimator.
        """
        classes = unit_array(class_features, "class_features")
        self.labels_ = nearest_centers(unit_array(X), classes).labels
        return self
