from __future__ import annotations

from collections import Counter

import pytest

from nouncut.paper.datasets.catalog import KNOWN, load_dataset
from nouncut.paper.datasets.class_folders import class_name
from nouncut.paper.datasets.class_prompts import imagenet_names, with_clip_prompts
from nouncut.paper.datasets.dataset import Dataset
from nouncut.paper.datasets.dataset_files import packaged_lines
from nouncut.paper.datasets.listed_images import _split_words
from nouncut.words.prompts import PROMPTS, check_prompts

CRANES = {"n02012849": "crane bird", "n03126707": "construction crane"}
SWIMSUITS = {"n03710637": "tights", "n03710721": "one-piece bathing suit"}


def test_classes_of_one_first_lemma_have_prompts_of_their_own(tmp_path, make):
    synsets = {**CRANES, **SWIMSUITS}
    lemmas = [class_name(synset).split(",")[0] for synset in synsets]
    assert lemmas == ["crane", "crane", "maillot", "maillot"]
    make.imagenet(tmp_path, *sorted(synsets))
    dataset = load_dataset("imagenet-1k", tmp_path)
    assert dict(zip(sorted(synsets), dataset.prompt_names, strict=True)) == synsets
    assert dataset.class_names[0] == "crane"


def test_imagenet_has_a_thousand_names_and_eighty_templates(tmp_path, make):
    names = imagenet_names()
    assert len(names) == 1000
    assert (names["n01440764"], names["n15075141"]) == ("tench", "toilet paper")
    # CLIP's authors have two pairs of one name, where first lemmas have more.
    repeated = [name for name, n in Counter(names.values()).items() if n > 1]
    assert repeated == ["missile", "sunglasses"]
    make.folders(tmp_path / "sketch", *CRANES)
    templates = load_dataset("imagenet-s", tmp_path).templates
    assert len(check_prompts(templates)) == len(set(templates)) == 80
    # The paper's seven are CLIP's choice among these.
    assert set(PROMPTS) <= set(templates)


def test_numbered_folders_have_imagenets_names(tmp_path, make):
    make.folders(tmp_path / "ImageNet-V2", "134", "517")
    assert load_dataset("imagenet-v2", tmp_path).prompt_names == tuple(CRANES.values())


@pytest.mark.parametrize(
    ("name", "n_templates", "prompts"),
    [
        ("stl10", 2, {"a photo of the bird."}),
        ("cifar10", 18, {"a blurry photo of the frog.", "a photo of a big truck."}),
        ("dtd", 8, {"a photo of a polka-dotted texture."}),
        ("ucf101", 48, {"a video of the person doing Apply Eye Makeup."}),
        ("aircraft", 2, {"a photo of the F/A-18, a type of aircraft."}),
        ("food", 1, {"a photo of apple pie, a type of food."}),
        ("flowers", 1, {"a photo of a passion flower, a type of flower."}),
        ("pets", 1, {"a photo of a american bulldog, a type of pet."}),
        ("cars", 8, {"i love my AM General Hummer SUV 2000!"}),
    ],
)
def test_data_sets_have_the_prompts_of_clips_authors(tmp_path, make, name, n_templates, prompts):
    getattr(make, name)(tmp_path)
    dataset = load_dataset(name, tmp_path)
    filled = {
        template.format(name) for template in dataset.templates for name in dataset.prompt_names
    }
    assert len(dataset.templates) == n_templates
    assert prompts <= filled


def test_names_of_clips_authors_are_found_for_all_classes():
    def prompt_names(key, *names):
        return with_clip_prompts(Dataset("a", None, None, None, names), key).prompt_names

    changed = [
        (own, theirs)
        for own in packaged_lines("flowers-102.txt")
        for theirs in prompt_names("flowers", own)
        if own != theirs
    ]
    assert len(changed) == 4
    assert ("ball moss", "air plant") in changed
    spelled = ("HandstandPushups", "Hand_Stand_Pushups", "handstand pushups")
    assert set(prompt_names("ucf-101", *spelled)) == {"Hand Stand Pushups"}
    assert prompt_names("ucf-101", _split_words("YoYo"), "Fishing") == ("Yo Yo", "Fishing")
    assert all(
        known.prompts for name, known in KNOWN.items() if name not in ("cifar-20", "places-365")
    )


def test_other_data_sets_have_their_own_names_and_the_papers_prompts(tmp_path, make):
    make.cifar100(tmp_path)
    make.folders(tmp_path / "photos", "Oat-Milk", "n02012849", "n02084071")
    assert load_dataset("cifar-20", tmp_path).templates == PROMPTS
    own = load_dataset(str(tmp_path / "photos"))
    assert own.templates == PROMPTS
    # Dogs are no class of ImageNet.
    assert own.prompt_names == ("Oat Milk", "crane bird", "dog")
