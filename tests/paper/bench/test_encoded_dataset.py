from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from nouncut.errors import ParameterError
from nouncut.method.whitening import half_whitening
from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.bench.encoded_dataset import EncodedDataset
from nouncut.paper.bench.setup import filter_templates, load_words
from nouncut.paper.datasets.catalog import load_dataset
from nouncut.words.prompts import PROMPTS


def kept_nouns(setup):
    return [json.loads(path.read_text())["nouns"] for path in (setup.output / "nouns").iterdir()]


def test_nouns_are_chosen_by_the_training_part_and_kept(setup, colours):
    encoded = EncodedDataset(colours, setup)
    problem = encoded.problem(0)
    assert len(problem.visual) == 45
    assert problem.n_clusters == 3
    assert len(problem.nouns) == len(PROMPTS)
    assert problem.candidates.shape == (len(setup.words), 8)
    assert problem.class_features.shape == (3, 8)
    assert problem.tau == 0.2
    assert {"red", "green", "blue"} <= set(kept_nouns(setup)[0])
    n_texts = setup.encoder.n_texts
    encoded.problem(0)
    assert setup.encoder.n_texts == n_texts


def test_heads_get_the_training_part(setup, colours, tmp_path, make):
    problem = EncodedDataset(colours, setup).problem(0)
    assert problem.dataset == colours.name
    assert problem.unit_train_visual.shape == problem.unit_train_semantic.shape == (30, 8)
    assert problem.unit_visual.shape == (45, 8)
    assert EncodedDataset(colours, setup).problem(0, with_train=False).train_visual is None
    make.folders(tmp_path / "photos", "a", "b")
    alone = EncodedDataset(load_dataset(str(tmp_path / "photos")), setup).problem(0)
    assert alone.unit_train_visual is alone.unit_visual
    assert alone.unit_train_semantic is alone.unit_semantic


def test_training_images_are_whitened_as_the_test_images_are(setup, colours):
    """Whitening depends on the images; a head needs one view of both parts."""
    setup.encoder.whitens_visual = True
    encoded = EncodedDataset(colours, setup)
    found = encoded.problem(0).train_visual
    view = half_whitening(encoded._test.images.rows(np.arange(45)))
    np.testing.assert_allclose(found, view(encoded._train.images.rows(np.arange(30))), atol=1e-5)
    assert np.abs(found - encoded._train.images.visual()).max() > 0.01


def test_without_class_names_no_noun_is_a_class(setup, colours):
    encoded = EncodedDataset(colours, setup)
    assert len(encoded.problem(0, "without class names").candidates) == len(setup.words) - 3
    assert {"red", "green", "blue"}.isdisjoint(kept_nouns(setup)[0])
    # The plural "reds" too.
    assert len(encoded.problem(0, "without related words").candidates) == len(setup.words) - 4


def test_facts_change_with_all_that_decides_a_result(tmp_path, setup, make):
    make.folders(tmp_path / "photos", "a", "b")
    dataset = load_dataset(str(tmp_path / "photos"))
    make.folders(tmp_path / "others", "a", "b")
    other_train = replace(dataset, train=load_dataset(str(tmp_path / "others")).test)
    encoded = EncodedDataset(dataset, setup)
    few_words = EncodedDataset(dataset, replace(setup, words=setup.words[:5]))
    facts = [
        encoded.result_facts("ours", 0),
        encoded.result_facts("ours", 1),
        encoded.result_facts("ours", 0, "without class names"),
        encoded.result_facts("ours", 0, "without related words"),
        encoded.result_facts("ours", 0, prompt=2),
        encoded.result_facts("tac", 0),
        few_words.result_facts("ours", 0),
        EncodedDataset(dataset, replace(setup, neighbors="mutual")).result_facts("ours", 0),
        EncodedDataset(other_train, setup).result_facts("ours", 0),
    ]
    make.picture(dataset.test.path(0), 1)
    facts.append(EncodedDataset(dataset, setup).result_facts("ours", 0))
    assert len({json.dumps(one) for one in facts}) == len(facts)


def test_every_quick_method_runs_on_a_problem_of_the_bench(encoded):
    problem = encoded.problem(0, with_gradnorm=True)
    for method in METHODS.values():
        if not method.needs_torch and not method.package:
            assert method.fit_predict(problem, 0).shape == (45,)


def test_vocabularies_have_names_or_are_files(tmp_path, make):
    make.lines(tmp_path / "few.txt", "polar_bear", "panda")
    assert load_words(str(tmp_path / "few.txt")) == ["polar bear", "panda"]
    assert len(load_words("wordnet")) == 119_034
    visible = load_words("visible")
    assert {"dog", "guide dog"} <= set(visible) < set(load_words("wordnet"))
    assert "justice" not in visible
    with pytest.raises(ParameterError, match="`vocabulary` must be wordnet, visible or a"):
        load_words("everything")


def test_prompts_of_the_filter_depend_on_the_model(setup, colours):
    assert filter_templates(setup.encoder) == PROMPTS
    assert filter_templates(setup.encoder, quick=True) == ("{}",)
    without = EncodedDataset(colours, replace(setup, filter_templates=("{}",)))
    assert without.problem_facts(0, prompt=2)["filter_templates"] == ("{}",)


def test_zero_shot_has_the_prompts_of_clips_authors(tmp_path, make, setup):
    make.folders(tmp_path / "imagenet-a", "n02012849", "n03126707")
    encoded = EncodedDataset(load_dataset("imagenet-a", tmp_path), setup)
    texts = []
    encode = setup.encoder.encode_texts
    setup.encoder.encode_texts = lambda batch: texts.extend(batch) or encode(batch)
    bird, machine = encoded.problem(0).class_features
    assert abs(bird @ machine) < 0.9999
    assert {"itap of my crane bird.", "itap of my construction crane."} <= set(texts)
