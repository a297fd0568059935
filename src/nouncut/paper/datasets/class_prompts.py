"""The names and templates with which CLIP's authors classify these data sets without training."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from nouncut.paper.datasets.dataset import Dataset


def with_clip_prompts(dataset: Dataset, key: str) -> Dataset:
    """Return a data set with CLIP's templates for it, and CLIP's names where they differ."""
    published = _published()[key]
    theirs = {_letters(own): name for own, name in published.get("names", {}).items()}
    names = dataset.prompt_names or dataset.class_names
    return replace(
        dataset,
        prompt_names=tuple(theirs.get(_letters(name), name) for name in names),
        templates=tuple(published["templates"]),
    )


@lru_cache(maxsize=1)
def imagenet_names() -> dict[str, str]:
    """Return CLIP's names of ImageNet's classes by synset, in ImageNet's order."""
    synsets = files("nouncut.models").joinpath("data/imagenet-1k-synsets.txt")
    return dict(
        zip(synsets.read_text("ascii").split(), _published()["imagenet_names"], strict=True)
    )


@lru_cache(maxsize=1)
def _published() -> dict[str, Any]:
    data = files("nouncut.paper.datasets").joinpath("data/clip-prompts.json")
    published: dict[str, Any] = json.loads(data.read_text("utf-8"))
    return published


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
