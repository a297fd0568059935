from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from nouncut.store.store import FeatureStore

WORDS = ("cat", "dog", "sea", "photo", "red", "green", "blue", "stripe")


@pytest.fixture(scope="session")
def tiny_clip(tmp_path_factory) -> str:
    """Return the folder of a tiny random CLIP model, saved in the real format."""
    path = Path(__file__).parents[1] / "models" / "conftest.py"
    return str(runpy.run_path(str(path))["save_clip"](tmp_path_factory.mktemp("tiny") / "clip"))


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> FeatureStore:
    return FeatureStore(tmp_path_factory.mktemp("store"))


@pytest.fixture
def draw(tmp_path) -> Callable[..., Path]:
    """Return a maker of little pictures of three colours in ``tmp_path / "photos"``."""

    def make(numbers: range, copies: int = 0) -> Path:
        folder = tmp_path / "photos"
        folder.mkdir(exist_ok=True)
        for number in numbers:
            rng = np.random.default_rng(0 if copies else number)
            pixels = rng.integers(0, 60, (24, 32, 3), dtype=np.uint8)
            pixels[..., 0 if copies else number % 3] += 150
            Image.fromarray(pixels).save(folder / f"{number:02}.png")
        return folder

    return make


@pytest.fixture
def words() -> tuple[str, ...]:
    return WORDS
