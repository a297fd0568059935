from hypothesis import given
from hypothesis import strategies as st

from nouncut.report.shown_images import describe_images, plan_thumbnails
from nouncut.runs.tables import images_table


@given(st.integers(0, 10**6), st.integers(0, 3000))
def test_thumbnails_never_take_more_than_30_megabytes(n_images, n_clusters):
    plan = plan_thumbnails(n_images, n_clusters)
    n_shown = min(n_images, n_clusters * (plan.n_exemplars + plan.n_borderline))
    n_small = n_images - n_shown if plan.is_inline else 0
    # Photographs take up to 4.6 side^1.36 bytes, and a third more as text.
    n_bytes = n_shown * plan.side**1.36 + n_small * plan.small_side**1.36
    assert n_bytes * 4.6 * 4 / 3 < 30e6
    assert plan.n_exemplars >= 1
    assert plan.is_inline == (n_images <= 10_000)


def test_links_lead_to_the_files_and_are_no_scripts(small_run):
    for image in describe_images(small_run, range(24)).values():
        assert image.link.startswith("../photos/")
        assert not set(image.link) & set(":<>\"'\n")
        assert "\n" not in image.shown_path
        assert image.path.exists()


def test_a_file_named_like_a_script_is_a_path(tmp_path, write_run):
    directory = tmp_path / "run"
    path = directory / "javascript:alert(1)"
    run = write_run(directory, images_table([path]), [0])
    assert describe_images(run, [0])[0].link == "javascript%3Aalert%281%29"
