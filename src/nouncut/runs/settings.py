"""The settings of a run, each declared once.

The command line, validation, the manifest, the digest and the report's labels follow from the
declarations in `Settings`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from nouncut.compute.checks import check_choice, check_positive, check_weight
from nouncut.errors import ParameterError
from nouncut.method.choices import Solver
from nouncut.words.nouns import NounFilter
from nouncut.words.prompts import PROMPTS, check_prompts, read_prompts
from nouncut.words.wordnet import LEXICONS, VISIBLE_LEXICONS

Comparison = Literal["looks", "words"]
Auto = Literal["auto"]

# NumPy's generators take seeds below this.
_SEEDS = 2**32
_SHOWN_WORDS = 12


def _show(value: Any) -> str:
    if value in (None, "auto"):
        return "automatic"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Declaration:
    """How a setting is checked, shown in the report, and given on the command line."""

    label: str
    help: str
    flags: tuple[str, ...]
    check: Callable[[str, Any], None]
    show: Callable[[Any], str] = _show
    metavar: str | None = None
    # The type that the command line parses, and what turns it into what `cluster_images` takes.
    option_type: Any = str
    parse: Callable[[Any], Any] = lambda given: given
    option_default: Any = "auto"


def _check_whole_or_auto(name: str, value: object) -> None:
    if value != "auto":
        check_positive({name: value}, Integral)


def _parse_whole_or_auto(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def check_levels(name: str, value: Sequence[int] | None) -> None:
    """Raise unless all numbers of groups are whole and positive."""
    if value is not None and not value:
        raise ParameterError(f"`{name}` has no numbers. Pass at least one.")
    for count in value or ():
        check_positive({name: count}, Integral)


def _parse_counts(text: str) -> int | str | tuple[int | str, ...]:
    """Read one number of groups, or several with commas between them."""
    counts = tuple(_parse_whole_or_auto(part.strip()) for part in text.split(","))
    return counts[0] if len(counts) == 1 else counts


def _parse_levels(text: str | None) -> tuple[int | str, ...] | None:
    return None if text is None else tuple(_parse_whole_or_auto(p.strip()) for p in text.split(","))


def _show_levels(levels: Sequence[int] | None) -> str:
    return "those that persist" if levels is None else ", ".join(map(str, levels))


def _check_tau(name: str, value: object) -> None:
    if value not in (None, "auto"):
        check_positive({name: value}, Real)


def _parse_number(text: str | None) -> float | str | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _check_seed(name: str, value: object) -> None:
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not is_whole or not 0 <= value < _SEEDS:  # type: ignore[operator]
        raise ParameterError(
            f"`{name}` must be a whole number from 0 to {_SEEDS - 1}; got {value!r}."
        )


def _check_model(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise ParameterError(f"`{name}` must be the name or folder of a model; got {value!r}.")


def _check_looks(name: str, value: Sequence[str] | None) -> None:
    if isinstance(value, str) or (value is not None and not value):
        raise ParameterError(f"`{name}` must be a list of models; got {value!r}.")
    for model in value or ():
        _check_model(name, model)


def _parse_looks(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(model.strip() for model in text.split(","))


def _show_looks(models: Sequence[str] | None) -> str:
    return "the model" if models is None else ", ".join(models)


def _check_one_of(choices: Sequence[str]) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        if value is not None:
            check_choice(name, value, choices)

    return check


def _check_vocabulary(name: str, value: Sequence[str] | None) -> None:
    if value is not None and not value:
        raise ParameterError(f"`{name}` has no words. Pass at least one.")


def _show_vocabulary(words: Sequence[str] | None) -> str:
    if words is None:
        return "nouns of WordNet"
    more = f" and {len(words) - _SHOWN_WORDS:,} more" if len(words) > _SHOWN_WORDS else ""
    return ", ".join(words[:_SHOWN_WORDS]) + more


def _check_lexicons(name: str, value: Sequence[str] | None) -> None:
    for lexicon in value or ():
        check_choice(name, lexicon, LEXICONS)


def _parse_lexicons(text: str) -> tuple[str, ...] | None:
    if text == "auto":
        return VISIBLE_LEXICONS
    return None if text == "all" else tuple(name.strip() for name in text.split(","))


def _show_lexicons(lexicons: Sequence[str] | None) -> str:
    return "all of WordNet" if lexicons is None else ", ".join(lexicons)


def _check_prompts(name: str, value: Sequence[str]) -> None:
    check_prompts(value)


def _parse_prompts(text: str) -> tuple[str, ...]:
    """Read numbers of built-in prompts, "all", or a file of templates."""
    if text == "all":
        return PROMPTS
    numbers = [number.strip() for number in text.split(",")]
    if not all(number.isdecimal() for number in numbers):
        return tuple(read_prompts(text))
    if not all(1 <= int(number) <= len(PROMPTS) for number in numbers):
        raise ParameterError(
            f"`prompts` must be numbers from 1 to {len(PROMPTS)}, such as 1,3; got {text}."
        )
    return tuple(PROMPTS[int(number) - 1] for number in dict.fromkeys(numbers))


@dataclass(frozen=True)
class Settings:
    """What decides a result besides the images.

    Parameters
    ----------
    n_clusters, levels, model, looks, vocabulary, lexicons, prompts, tau, semantic_weight, \
n_neighbors, random_state, solver, noun_filter, compare
        As for `nouncut.cluster_images`.

    Examples
    --------
    >>> from nouncut.runs.settings import Settings
    >>> Settings(vocabulary=("calm", "wild")).comparison
    'words'
    >>> Settings(n_clusters=0)
    Traceback (most recent call last):
    ...
    nouncut.errors.ParameterError: `n_clusters` must be a whole number of at least 1; got 0.
    """

    n_clusters: Annotated[
        int | Auto,
        Declaration(
            label="Number of groups",
            help="Number of groups; auto finds it from the images. Several, such as 5,20,100, give "
            "groups of groups from one graph.",
            flags=("-k", "--clusters"),
            metavar="N,...|auto",
            parse=_parse_counts,
            check=_check_whole_or_auto,
        ),
    ] = "auto"
    levels: Annotated[
        tuple[int, ...] | None,
        Declaration(
            label="Groups of groups",
            help="Numbers of groups on the levels above the groups, such as 5,20. Default: the few "
            "levels that persist, if any.",
            flags=("--levels",),
            metavar="N,...",
            option_type=str | None,
            option_default=None,
            parse=_parse_levels,
            check=check_levels,
            show=_show_levels,
        ),
    ] = None
    model: Annotated[
        str,
        Declaration(
            label="Model",
            help="auto, mini, ViT-B/32, a hub id or a folder: see nouncut models. auto uses CLIP "
            "if its weights are on this machine or can be fetched (this uses the network), else "
            "mini. For ready-made features: the model that made them, or a file of noun vectors "
            "(.npz, .parquet).",
            flags=("--model",),
            check=_check_model,
        ),
    ] = "auto"
    looks: Annotated[
        tuple[str, ...] | None,
        Declaration(
            label="Looks compared by",
            help="Another model that compares images with each other, while --model compares them "
            "with words: DINOv2 or other image models, CLIP, or mini. Several, with commas between "
            "them, count alike.",
            flags=("--looks",),
            metavar="MODEL,...",
            option_type=str | None,
            option_default=None,
            parse=_parse_looks,
            check=_check_looks,
            show=_show_looks,
        ),
    ] = None
    vocabulary: Annotated[
        tuple[str, ...] | None,
        Declaration(
            label="Vocabulary",
            help="A file of your own words, one per line (or CSV): images are grouped by what "
            "these words distinguish.",
            flags=("--vocabulary",),
            metavar="FILE",
            option_type=Path | None,
            option_default=None,
            check=_check_vocabulary,
            show=_show_vocabulary,
        ),
    ] = None
    lexicons: Annotated[
        tuple[str, ...] | None,
        Declaration(
            label="Kinds of nouns",
            help="WordNet's files to take nouns from, such as animal,food; all for every one; auto "
            "for things that can be seen.",
            flags=("--lexicon",),
            metavar="NAME,...|all|auto",
            parse=_parse_lexicons,
            check=_check_lexicons,
            show=_show_lexicons,
        ),
    ] = VISIBLE_LEXICONS
    prompts: Annotated[
        tuple[str, ...],
        Declaration(
            label="Prompts",
            help="Which of the seven built-in prompts to use, or a file of your own, each with "
            "one {}.",
            flags=("--prompts", "--templates"),
            metavar="N,...|FILE|all",
            option_default="all",
            parse=_parse_prompts,
            check=_check_prompts,
            show=" \N{MIDDLE DOT} ".join,
        ),
    ] = PROMPTS
    tau: Annotated[
        float | Auto | None,
        Declaration(
            label="Temperature (tau)",
            help="Temperature of the softmax over nouns; auto chooses one. Default: 0.04 for CLIP, "
            "auto for other models.",
            flags=("--tau",),
            metavar="X|auto",
            option_type=str | None,
            option_default=None,
            parse=_parse_number,
            check=_check_tau,
        ),
    ] = None
    semantic_weight: Annotated[
        float | Auto,
        Declaration(
            label="Weight of words",
            help="How much words count beside looks, from 0 (looks alone) to 1 (the paper); auto "
            "trusts words as far as they agree with looks.",
            flags=("--semantic-weight",),
            metavar="X|auto",
            parse=_parse_number,
            check=check_weight,
        ),
    ] = "auto"
    n_neighbors: Annotated[
        int | Auto,
        Declaration(
            label="Neighbours per image",
            help="Neighbours that every image keeps; auto is twice the root of the number of "
            "images per group, at most 30.",
            flags=("--neighbors",),
            metavar="N|auto",
            parse=_parse_whole_or_auto,
            check=_check_whole_or_auto,
        ),
    ] = "auto"
    random_state: Annotated[
        int,
        Declaration(
            label="Seed",
            help="Seed of everything random.",
            flags=("--seed",),
            option_type=int,
            option_default=0,
            check=_check_seed,
        ),
    ] = 0
    solver: Annotated[
        Solver,
        Declaration(
            label="Solver",
            help="How the graphs of the prompts are combined: exact uses dense matrices.",
            flags=("--solver",),
            option_type=Solver,
            check=_check_one_of(get_args(Solver)),
        ),
    ] = "auto"
    noun_filter: Annotated[
        NounFilter | None,
        Declaration(
            label="Noun filter",
            help="How positive nouns are chosen. Default: tac for WordNet, none for up to 1,000 "
            "words of your own.",
            flags=("--noun-filter",),
            option_type=NounFilter | None,
            option_default=None,
            check=_check_one_of(get_args(NounFilter)),
        ),
    ] = None
    compare: Annotated[
        Comparison | None,
        Declaration(
            label="Images compared by",
            help="Compare images by how they look, or by what the words say of them. Default: "
            "looks; words with --vocabulary.",
            flags=("--compare",),
            option_type=Comparison | None,
            option_default=None,
            check=_check_one_of(get_args(Comparison)),
        ),
    ] = None

    def __post_init__(self) -> None:
        for name, declaration in declarations().items():
            declaration.check(name, getattr(self, name))
        if self.vocabulary is not None and self.lexicons != VISIBLE_LEXICONS:
            raise ParameterError("`vocabulary` and `lexicons` exclude each other: pass one.")
        finest = self.n_clusters
        if finest != "auto" and any(count >= finest for count in self.levels or ()):
            raise ParameterError(
                f"`levels` must be smaller than the number of clusters, {finest}; got "
                f"{_show_levels(self.levels)}."
            )
        if self.looks is not None and self.comparison == "words":
            raise ParameterError(
                "`looks` compares images by how they look, but they are to be compared by words: "
                "leave `looks` out, or pass `compare` as 'looks'."
            )

    @property
    def comparison(self) -> Comparison:
        """What makes images close."""
        return self.compare or ("words" if self.vocabulary is not None else "looks")

    def to_json(self) -> dict[str, Any]:
        """Return all settings by name, as JSON knows them."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    def digest(self, sources: Sequence[str]) -> str:
        """Hash of settings and sources; equal for equivalent runs."""
        text = json.dumps([self.to_json(), list(sources)], sort_keys=True)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


@cache
def declarations() -> dict[str, Declaration]:
    """Return the declaration of every setting by name."""
    hints = get_type_hints(Settings, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def shown_settings(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List label and value of every setting of a run, with what was chosen for open ones."""
    asked, used = _renamed(manifest.get("settings") or {}), _values_used(manifest)
    return [
        (declaration.label, _shown(declaration, asked[name], used.get(name)))
        for name, declaration in declarations().items()
        if name in asked
    ]


def _shown(declaration: Declaration, asked: Any, used: Any) -> str:
    if asked in (None, "auto") and used is not None:
        return f"{declaration.show(used)} (chosen automatically)"
    return declaration.show(asked)


def _values_used(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that were used; version 0.1.0 recorded only some, elsewhere."""
    earlier = {name: manifest.get(name) for name in ("n_clusters", "tau", "solver", "n_neighbors")}
    model = (manifest.get("model") or {}).get("name")
    return earlier | {"model": model} | (manifest.get("used") or {})


def _renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings under today's names; version 0.1.0 had some others."""
    names = {"words": "vocabulary", "templates": "prompts", "seed": "random_state"}
    return {names.get(name, name): value for name, value in settings.items()}
