"""What the attacks work on: little pictures, words, and a tiny random model of a real class."""

from __future__ import annotations

import runpy
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parents[1]
MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Scene:
    """Pictures of four kinds, words, and a model that loads in no time."""

    photos: Path
    words: Path
    model: Path


def make_scene(folder: Path, n_images: int = 24) -> Scene:
    """Write a scene into a new folder."""
    cli = runpy.run_path(str(TESTS / "cli" / "conftest.py"))
    models = runpy.run_path(str(TESTS / "models" / "conftest.py"))
    folder.mkdir(parents=True)
    cli["draw_pictures"](folder / "photos", range(n_images))
    words = cli["write_words"](folder)
    return Scene(folder / "photos", words, models["save_clip"](folder / "model"))


@contextmanager
def quick_folder() -> Iterator[Path]:
    """Make a temporary folder, in memory if possible: attacks wait for many writes."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)
