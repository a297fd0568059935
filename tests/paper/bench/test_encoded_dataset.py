from __future__ import annotations

import json
from dataclasses import replace

from nouncut.paper.baselines.methods import METHODS
from nouncut.paper.bench.encoded_dataset import EncodedDataset
from nouncut.paper.bench.setup import filter_templates
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


def test_without_class_names_no_noun_is_a_class(setup, colours):
    problem = EncodedDataset(colours, setup).problem(0, "without class names")
    # red, green, blue, and the plural "reds".
    assert len(problem.candidates) == len(setup.words) - 4
    assert {"red", "reds", "green", "blue"}.isdisjoint(kept_nouns(setup)[0])


def test_facts_change_with_all_that_decides_a_result(tmp_path, setup, make):
    make.folders(tmp_path / "photos", "a", "b")
    dataset = load_dataset(str(tmp_path / "photos"))
    encoded = EncodedDataset(dataset, setup)
    few_words = EncodedDataset(dataset, replace(setup, words=setup.words[:5]))
    facts = [
        encoded.result_facts("ours", 0),
        encoded.result_facts("ours", 1),
        encoded.result_facts("ours", 0, "without class names"),
        encoded.result_facts("tac", 0),
        few_words.result_facts("ours", 0),
    ]
    make.picture(dataset.test.path(0), 1)
    facts.append(EncodedDataset(dataset, setup).result_facts("ours", 0))
    assert len({json.dumps(one) for one in facts}) == len(facts)


def test_every_quick_method_runs_on_a_problem_of_the_bench(encoded):
    problem = encoded.problem(0, with_gradnorm=True)
    for method in METHODS.values():
        if not method.needs_torch and not method.package:
            assert method.fit_predict(problem, 0).shape == (45,)


def test_prompts_of_the_filter_depend_on_the_model(setup):
    assert filter_templates(setup.encoder) == PROMPTS
    assert filter_templates(setup.encoder, quick=True) == ("{}",)
