"""Why images are in their clusters, as the page's scripts read it."""

import json

from nouncut.report import shown_images
from nouncut.report.reasons import reasons_data


def test_many_images_are_explained_only_where_shown(explained_run, monkeypatch):
    everyone = reasons_data(explained_run, [4])
    assert len(everyone["images"]) == 20
    monkeypatch.setattr(shown_images, "MAX_INLINE", 19)
    few = reasons_data(explained_run, {7, 4})
    assert list(few["images"]) == ["4", "7"]
    for row in ("4", "7"):
        one, other = few["images"][row], everyone["images"][row]
        assert (one[0], one[2]) == (other[0], other[2])
        words = [
            [found["words"][i] for i in part[1]] for found, part in ((few, one), (everyone, other))
        ]
        assert words[0] == words[1]


def test_a_hundred_bytes_per_image_are_enough(explained_run):
    data = json.dumps(reasons_data(explained_run, []), separators=(",", ":"))
    assert len(data) / explained_run.manifest["n_images"] < 100


def test_a_run_without_arrays_has_no_reasons(coloured_run):
    assert reasons_data(coloured_run, []) == {"words": [], "images": {}}
