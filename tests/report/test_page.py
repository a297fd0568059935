import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nouncut.images.find import SkippedFile
from nouncut.report.facts import describe_count, describe_model, describe_settings, shown_date
from nouncut.report.page import describe_run
from nouncut.report.pictures import plan_pictures
from nouncut.runs.run import Run
from nouncut.runs.tables import images_table


@given(st.integers(0, 10**6), st.integers(0, 3000))
def test_a_page_never_has_more_pictures_than_a_browser_takes(n_images, n_clusters):
    plan = plan_pictures(n_images, n_clusters)
    n_shown = min(n_images, n_clusters * (plan.n_exemplars + plan.n_borderline))
    n_small = n_images - n_shown if plan.is_inline else 0
    # Photographs take up to 4.6 side^1.36 bytes, and a third more as text.
    n_bytes = n_shown * plan.side**1.36 + n_small * plan.small_side**1.36
    assert n_bytes * 4.6 * 4 / 3 < 30e6
    assert plan.n_exemplars >= 1
    assert plan.is_inline == (n_images <= 10_000)


def test_the_small_run(small_run):
    page = describe_run(small_run)
    assert (page.title, page.n_images, page.n_outliers, page.n_skipped) == ("photos", 24, 1, 1)
    assert [cluster.size for cluster in page.clusters] == [12, 8, 4]
    assert sum(cluster.share for cluster in page.clusters) == pytest.approx(1)
    assert page.skipped[0].reason == "the file is empty"
    assert page.n_nouns == 3
    # All images of these small clusters are shown as typical ones already.
    assert [cluster.borderline for cluster in page.clusters] == [[], [], []]
    assert len(page.pictures()) == 24


def test_links_lead_from_the_report_to_the_files_and_are_no_scripts(small_run):
    for picture in describe_run(small_run).pictures().values():
        assert picture.link.startswith("../photos/")
        assert not set(picture.link) & set(":<>\"'\n")
        assert "\n" not in picture.shown_path
        assert picture.path.exists()


def test_a_script_in_the_run_directory_itself_is_a_path(tmp_path, write_run):
    directory = tmp_path / "run"
    path = directory / "javascript:alert(1)"
    page = describe_run(write_run(directory, images_table([path], hashes=["0" * 40]), [0]))
    assert page.pictures()[0].link == "javascript%3Aalert%281%29"


def test_copies_are_shown_once(tmp_path, write_run):
    images = images_table([f"/photos/{n}.jpg" for n in range(20)], hashes=["a" * 40] * 20)
    (cluster,) = describe_run(write_run(tmp_path / "run", images, [0] * 20)).clusters
    assert [picture.n_identical for picture in cluster.exemplars] == [20]
    assert cluster.borderline == []


def test_unsure_images_are_shown_with_their_second_choice(tmp_path, write_run):
    images = images_table(
        [f"/photos/{n}.jpg" for n in range(40)], hashes=[f"{n:040}" for n in range(40)]
    )
    page = describe_run(write_run(tmp_path / "run", images, [0] * 20 + [1] * 20))
    first = page.clusters[0]
    assert [picture.row for picture in first.borderline] == [*range(19, 11, -1)]
    assert {picture.second_name for picture in first.borderline} == {"cluster 2"}
    sure = write_run(tmp_path / "sure", images, [0] * 20 + [1] * 20, second_confidence=[0.001] * 40)
    assert [cluster.borderline for cluster in describe_run(sure).clusters] == [[], []]


def test_the_least_sure_outliers_come_first(tmp_path, write_run):
    n_images = 300
    images = images_table(
        [f"/photos/{n}.jpg" for n in range(n_images)], hashes=[f"{n:040}" for n in range(n_images)]
    )
    confidence = [1 - n / 1000 for n in range(n_images)]
    run = write_run(
        tmp_path / "run", images, [0] * n_images, outlier=[True] * n_images, confidence=confidence
    )
    page = describe_run(run)
    assert page.n_outliers == 300
    assert [picture.row for picture in page.outliers] == [*range(299, 251, -1)]


def test_skipped_files_are_grouped(tmp_path, write_run):
    skipped = [SkippedFile(Path(f"/photos/{n}.doc"), "not an image") for n in range(500)]
    skipped.append(SkippedFile(Path("/photos/a.jpg"), "the file is empty"))
    run = write_run(tmp_path / "run", images_table(["/photos/1.jpg"], skipped=skipped), [0])
    groups = describe_run(run).skipped
    assert [(group.reason, group.n_files) for group in groups] == [
        ("not an image", 500),
        ("the file is empty", 1),
    ]
    assert len(groups[0].shown_paths) == 200


@pytest.mark.parametrize(
    ("source", "title"),
    [
        (["/home/me/my pets"], "my pets"),
        (["/home/me/my pets/"], "my pets"),
        (["/a/cats", "/a/dogs", "/b"], "cats and 2 more"),
        (["."], "pets"),
        ([".."], "pets"),
        ([], "pets"),
        (["features.npy"], "features.npy"),
        (["two\nlines"], "two\\nlines"),
    ],
)
def test_the_title_is_the_source(tmp_path, write_run, source, title):
    images = images_table(["/home/pets/cats/1.jpg", "/home/pets/dogs/1.jpg"])
    run = write_run(tmp_path / "run", images, [0, 0], {"source": source})
    assert describe_run(run).title == title


@pytest.mark.parametrize(
    ("confidence", "verdict"), [(0.9, "quite sure"), (0.5, "a fair guess"), (0.1, "unsure")]
)
def test_the_number_of_clusters_is_as_sure_as_it_says(confidence, verdict):
    count = {"n_clusters": 2, "candidates": [[2, 0.0], [3, None]], "confidence": confidence}
    facts = describe_count({"n_clusters": 2, "cluster_count": count})
    assert facts.verdict == verdict
    assert facts.candidates == ((2, 0.0), (3, 0.0))


def test_a_given_number_is_called_given():
    assert describe_count({"n_clusters": 1}).explanation.startswith("1 cluster was asked for")


def test_the_embedded_model_is_not_passed_off_as_clip():
    facts = describe_model({"model": {"name": "mini", "embedded": True}})
    assert facts.is_embedded
    assert "not CLIP" in facts.meaning
    assert "not CLIP" not in describe_model({"model": {"name": "ViT-B/32"}}).meaning


def test_settings_show_what_was_chosen(small_run):
    settings = dict(describe_settings(small_run.manifest))
    assert settings["Temperature (tau)"] == "auto: 0.2"
    assert settings["Number of clusters asked for"] == "auto: 3"
    assert settings["Seed"] == "0"
    assert settings["Command"] == "nouncut cluster photos"


def test_a_bare_manifest_is_enough(tmp_path, write_run):
    run = write_run(tmp_path / "run", images_table(["/photos/1.jpg"]), [0])
    needed = ("id", "status", "n_clusters", "n_images")
    bare = Run(run.directory, {key: run.manifest[key] for key in needed})
    page = describe_run(bare)
    assert (page.title, page.finished, page.nouns) == ("photos", "", [])


def test_dates_that_are_none_are_shown_as_they_are():
    assert shown_date("yesterday") == "yesterday"
    assert shown_date(None) == ""


def test_steps_can_be_pasted(make_run, tmp_path):
    import shlex

    run = make_run(tmp_path / "it's; a run", manifest={"source": ["my photos", "$(date)"]})
    commands = [shlex.split(step.command) for step in describe_run(run).steps]
    assert commands == [
        ["nouncut", "cluster", "my photos", "$(date)", "-k", "2"],
        ["nouncut", "export", str(run.directory)],
        ["nouncut", "predict", str(run.directory), "NEW_IMAGES"],
    ]


def test_the_page_is_plain_data(small_run):
    assert dataclasses.asdict(describe_run(small_run))


def test_no_more_clusters_than_images_are_proposed(tmp_path, write_run):
    run = write_run(tmp_path / "run", images_table(["/photos/1.jpg"]), [0])
    assert [step.command.split()[1] for step in describe_run(run).steps] == ["export", "predict"]
