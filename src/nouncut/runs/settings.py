"""What decides a result, besides the images."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, Literal, get_args

from nouncut.compute.checks import check_choice, check_positive
from nouncut.words.filters import NounFilter
from nouncut.words.prompts import PROMPTS, check_templates
from nouncut.words.wordnet import LEXICONS

# What can be seen in a picture; WordNet's other files hold acts, thoughts, amounts and the like.
VISIBLE_LEXICONS = (
    "animal",
    "artifact",
    "body",
    "event",
    "food",
    "object",
    "person",
    "phenomenon",
    "plant",
    "substance",
)
# What NumPy's generators take.
_SEEDS = 2**32
Solver = Literal["auto", "exact", "spectral"]
Compared = Literal["looks", "words"]


@dataclass(frozen=True)
class Settings:
    """What decides a result, besides the images.

    Parameters
    ----------
    n_clusters : int, optional
        Number of clusters; found from the images by default.
    model : str, default="auto"
        What `nouncut.models.choose.load_encoder` takes.
    words : tuple of str, optional
        The user's own words instead of WordNet's nouns.
    lexicons : tuple of str, optional
        WordNet's lexicographer files to take nouns from; None for all of them.
    templates : tuple of str
        Prompts.
    tau : float or "auto", optional
        Temperature; the published one for CLIP and "auto" for other models by default.
    n_neighbors : int, optional
        Neighbours that every image keeps; chosen from the numbers of images and clusters by
        default.
    seed : int, default=0
        Seed of everything random.
    solver : {"auto", "exact", "spectral"}, default="auto"
        How to diffuse.
    noun_filter : {"tac", "gradnorm", "none"}, optional
        Which nouns are used; by default TAC's for WordNet, and all of the user's own words.
    compare : {"looks", "words"}, optional
        Whether images are close when they look alike, or when the words say the same of them; by
        default "words" with the user's own words, and "looks" otherwise.

    Examples
    --------
    >>> from nouncut.runs.settings import Settings
    >>> Settings(words=("calm", "wild")).compared_by
    'words'
    >>> Settings(n_clusters=0)
    Traceback (most recent call last):
    ...
    ValueError: n_clusters must be a whole number of at least 1; got 0.
    """

    n_clusters: int | None = None
    model: str = "auto"
    words: tuple[str, ...] | None = None
    lexicons: tuple[str, ...] | None = VISIBLE_LEXICONS
    templates: tuple[str, ...] = tuple(PROMPTS)
    tau: float | Literal["auto"] | None = None
    n_neighbors: int | None = None
    seed: int = 0
    solver: Solver = "auto"
    noun_filter: NounFilter | None = None
    compare: Compared | None = None

    def __post_init__(self) -> None:
        check_choice("solver", self.solver, get_args(Solver))
        if self.noun_filter is not None:
            check_choice("noun_filter", self.noun_filter, get_args(NounFilter))
        if self.compare is not None:
            check_choice("compare", self.compare, get_args(Compared))
        whole = {"n_clusters": self.n_clusters, "n_neighbors": self.n_neighbors}
        check_positive({k: value for k, value in whole.items() if value is not None}, Integral)
        if self.tau not in (None, "auto"):
            check_positive({"tau": self.tau}, Real)
        if not 0 <= self.seed < _SEEDS:
            raise ValueError(f"seed must be from 0 to {_SEEDS - 1}, not {self.seed}.")
        _check_lexicons(self.lexicons)
        check_templates(self.templates)

    @property
    def compared_by(self) -> Compared:
        """What makes images close."""
        return self.compare or ("words" if self.words is not None else "looks")

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON takes them.

        Returns
        -------
        dict
            All settings by name.
        """
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    def digest(self, sources: Sequence[str]) -> str:
        """Return what two runs share that are the same question about the same source.

        Parameters
        ----------
        sources : sequence of str
            Where the images are.

        Returns
        -------
        str
            Hexadecimal.
        """
        text = json.dumps([self.as_json(), list(sources)], sort_keys=True)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


def _check_lexicons(lexicons: tuple[str, ...] | None) -> None:
    for lexicon in lexicons or ():
        check_choice("lexicon", lexicon, LEXICONS)
