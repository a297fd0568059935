from __future__ import annotations

import pytest

from nouncut.paper.published import METRICS, published_value, published_values


def test_every_value_is_a_percentage():
    values = published_values()
    assert len(values) == 1959
    assert all(0 <= value.value <= 100 for value in values)
    assert {value.metric for value in values} == set(METRICS)
    assert len({value[:-1] for value in values}) == len(values)


@pytest.mark.parametrize(
    ("tables", "method", "dataset", "metric", "options", "expected"),
    [
        (["tab:classic"], "Ours", "CIFAR-10", "NMI", {}, 83.3),
        (["tab:classic"], "DAC", "STL-10", "ACC", {}, 47.0),
        (["tab:encoder"], "Ours", "DTD", "ARI", {"backbone": "ViT-L/14"}, 38.9),
        (["tab:laion_clip_main"], "Ours", "DTD", "ACC", {"backbone": "OpenCLIP ViT-B/32"}, 56.4),
        (["prompt-templates"], "Ours", "STL-10", "NMI", {"section": "art of the"}, 95.5),
        (["tab:classic", "tab:complex"], "Ours", "DTD", "ACC", {}, 52.0),
        (["tab:classic"], "Ours", "DTD", "ACC", {}, None),
    ],
)
def test_values_are_found(tables, method, dataset, metric, options, expected):
    assert published_value(tables, method, dataset, metric, **options) == expected
