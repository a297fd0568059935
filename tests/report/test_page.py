from pathlib import Path

import pytest

from nouncut.images.find import SkippedFile
from nouncut.report.page import describe_run
from nouncut.report.write import write_report
from nouncut.runs.changes import Changes, GroupChange
from nouncut.runs.run import Run
from nouncut.runs.tables import images_table


def test_the_small_run(small_run):
    page = describe_run(small_run)
    assert (page.title, page.n_images, page.n_outliers, page.n_skipped) == ("photos", 24, 1, 1)
    assert [cluster.size for cluster in page.clusters] == [12, 8, 4]
    assert sum(cluster.share for cluster in page.clusters) == pytest.approx(1)
    assert page.skipped[0].reason == "the file is empty"
    assert page.n_nouns == 3
    # All images of these small clusters are shown as typical ones already.
    assert [cluster.borderline for cluster in page.clusters] == [[], [], []]
    assert len(page.shown_images()) == 24


def test_guesses_are_marked_until_they_are_renamed(small_run):
    page = write_report(small_run).read_text()
    assert page.count('data-guessed="1"') == 2
    assert 'data-guessed="0"' not in page
    assert "The model does not know what these images show." in page
    sections = describe_run(small_run).clusters
    assert [section.is_guess for section in sections] == [False, True, False]
    assert sections[2].name_confidence is None
    small_run.rename(1, "cats")
    assert "data-guessed=" not in write_report(small_run).read_text().partition("<script")[0]


def test_copies_are_shown_once(tmp_path, write_run):
    images = images_table([f"/photos/{n}.jpg" for n in range(20)], hashes=["a" * 40] * 20)
    (cluster,) = describe_run(write_run(tmp_path / "run", images, [0] * 20)).clusters
    assert [image.n_identical for image in cluster.exemplars] == [20]
    assert cluster.borderline == []


def test_unsure_images_are_shown_with_their_second_choice(tmp_path, write_run):
    images = images_table(
        [f"/photos/{n}.jpg" for n in range(40)], hashes=[f"{n:040}" for n in range(40)]
    )
    page = describe_run(write_run(tmp_path / "run", images, [0] * 20 + [1] * 20))
    first = page.clusters[0]
    assert [image.row for image in first.borderline] == [*range(19, 11, -1)]
    assert {image.second_name for image in first.borderline} == {"cluster 2"}


def test_second_choices_without_confidence_are_not_shown(tmp_path, write_run):
    images = images_table(
        [f"/photos/{n}.jpg" for n in range(40)], hashes=[f"{n:040}" for n in range(40)]
    )
    for second, n_shown in ((0.009, 0), (0.011, 8)):
        run = write_run(
            tmp_path / str(second),
            images,
            [0] * 20 + [1] * 20,
            confidence=[0.013 - row * 1e-5 for row in range(40)],
            second_confidence=[second] * 40,
        )
        assert [len(rows) for rows in run.clusters["borderline"].to_pylist()] == [12, 12]
        assert [len(one.borderline) for one in describe_run(run).clusters] == [n_shown] * 2


def test_the_least_sure_outliers_come_first(tmp_path, write_run):
    n_images = 300
    images = images_table(
        [f"/photos/{n}.jpg" for n in range(n_images)], hashes=[f"{n:040}" for n in range(n_images)]
    )
    confidence = [1 - n / 1000 for n in range(n_images)]
    everything = range(n_images)
    run = write_run(
        tmp_path / "run", images, [0] * n_images, outliers=everything, confidence=confidence
    )
    page = describe_run(run)
    assert page.n_outliers == 300
    assert [image.row for image in page.outliers] == [*range(299, 251, -1)]


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


def test_a_bare_manifest_is_enough(tmp_path, write_run):
    run = write_run(tmp_path / "run", images_table(["/photos/1.jpg"]), [0])
    needed = ("id", "status", "n_clusters", "n_images")
    bare = Run(run.directory, {key: run.manifest[key] for key in needed})
    page = describe_run(bare)
    assert (page.title, page.finished, page.nouns) == ("photos", "", [])


def test_groups_of_groups_are_a_nested_list(make_run, tmp_path):
    assert describe_run(make_run(tmp_path / "flat")).tree is None
    assert 'id="tree"' not in write_report(make_run(tmp_path / "flat")).read_text()
    levels = {"sizes": [12, 8, 4], "levels": [[0, 1, 0]]}
    run = make_run(tmp_path / "run", manifest={"tree": levels})
    text = write_report(run).read_text()
    tree = text.partition('<details class="tree"')[2].partition("</details>")[0]
    assert tree.count("<ul>") == tree.count("</ul>") == 2
    for number in range(3):
        assert tree.count(f'href="#cluster-{number}"') == 1
    assert ">16<" in tree
    assert "<script" not in tree
    assert "<b>" not in tree


def test_what_changed_is_a_section(make_run, tmp_path):
    quiet = make_run(tmp_path / "first")
    assert 'id="changes"' not in write_report(quiet).read_text()
    group = GroupChange(1, "<b>cats</b>", 3, 8)
    changes = Changes(n_new=6, n_gone=1, groups=[group], why_recluster="the reason")
    page = write_report(make_run(tmp_path / "run", manifest={"changes": changes.to_json()}))
    section = page.read_text().partition('id="changes"')[2].partition("</section>")[0]
    assert "6 images are new, 1 image is gone." in section
    assert "&lt;b&gt;cats&lt;/b&gt;&#34; +5" in section
    # The page gives the command for it instead.
    assert "recluster" not in section
