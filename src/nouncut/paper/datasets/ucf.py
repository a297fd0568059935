"""UCF-101: one frame from the middle of every video."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from nouncut.errors import printable_path
from nouncut.paper.datasets.dataset import Dataset, DatasetFilesError, FileImages
from nouncut.paper.datasets.finding import images_in, lines, need, numbered
from nouncut.paper.datasets.folders import has_split, load_folders


def load_ucf101(folder: Path) -> Dataset:
    """Load the middle frames of UCF-101, the first of its three splits."""
    if has_split(folder):
        return load_folders(folder, "UCF-101")
    lists = need(folder, "ucfTrainTestlist")
    names = [line.split()[1] for line in lines(need(lists, "classInd.txt"))]
    train, test = (
        [line.split()[0] for line in lines(need(lists, f"{part}list01.txt"))]
        for part in ("train", "test")
    )
    frames = {path.stem: path for path in images_in(folder)}
    return Dataset(
        "UCF-101",
        FileImages(_frames_of(train, frames, folder)),
        FileImages(_frames_of(test, frames, folder)),
        numbered([video.split("/")[0] for video in test], names),
        tuple(_words(name) for name in names),
    )


def _frames_of(videos: Sequence[str], frames: Mapping[str, Path], folder: Path) -> tuple[Path, ...]:
    stems = [Path(video).stem for video in videos]
    missing = [stem for stem in stems if stem not in frames]
    if missing:
        raise DatasetFilesError(
            f"{printable_path(folder)} has no frame of {len(missing):,} of {len(stems):,} videos "
            f"({missing[0]}.jpg is the first). nouncut reads images, not videos: save the middle "
            "frame of every video under the video's name, for instance with ffmpeg."
        )
    return tuple(frames[stem] for stem in stems)


def _words(name: str) -> str:
    """Return "apply eye makeup" for "ApplyEyeMakeup"; "YoYo" and "TaiChi" come apart as well."""
    return " ".join(re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)).lower()
