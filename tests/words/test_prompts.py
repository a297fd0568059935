import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nouncut.errors import InputError, ParameterError
from nouncut.words.prompts import PROMPTS, check_prompts, fill_template, read_prompts

WITHOUT_BRACES = st.text(st.characters(exclude_characters="{}", exclude_categories=["Cs"]))


def test_the_papers_prompts():
    assert PROMPTS == (
        "itap of a {}.",
        "a bad photo of the {}.",
        "a origami {}.",
        "a photo of the large {}.",
        "a {} in a video game.",
        "art of the {}.",
        "a photo of the small {}.",
    )
    assert check_prompts(PROMPTS) == list(PROMPTS)


@pytest.mark.parametrize(
    "template",
    [
        "a dog.",
        "",
        "{} and {}",
        "a {noun}.",
        "a {0}.",
        "{} {x}",
        "{}}",
        "{{}",
        "{{}}",
        "{} {",
        "} {}",
    ],
)
def test_bad_template(template):
    problem = re.escape(f"{template!r} is not a template. Write {{}} exactly once")
    with pytest.raises(ParameterError, match=f"`prompts`: {problem}"):
        check_prompts(["a {}.", template])
    with pytest.raises(ParameterError, match=problem):
        fill_template(template, ["dog"])


def test_no_prompts():
    with pytest.raises(ParameterError, match="`prompts` is empty"):
        check_prompts([])


def test_one_text_is_no_list():
    with pytest.raises(ParameterError, match=r"pass \['a \{\}\.'\]"):
        check_prompts("a {}.")


def test_not_a_text():
    with pytest.raises(ParameterError, match="`prompts`: 7 is not a template"):
        check_prompts([7])


@settings(max_examples=40, deadline=None)
@given(WITHOUT_BRACES, WITHOUT_BRACES, st.lists(st.text()))
def test_nouns_go_in_as_they_are(before, after, nouns):
    filled = fill_template(before + "{}" + after, nouns)
    assert filled == [before + noun + after for noun in nouns]


def test_read_prompts(tmp_path):
    path = tmp_path / "prompts.txt"
    path.write_bytes(b"\xef\xbb\xbf# two\r\n\r\n  itap of a {}. \r\nart of the {}.\r\n")
    assert read_prompts(path) == read_prompts(str(path)) == ["itap of a {}.", "art of the {}."]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (
            b"# none\n",
            r"prompts\.txt has no templates. Write one per line, such as: a photo of a \{\}\.",
        ),
        (b"a {}.\n\na dog.\n", r"prompts\.txt, line 3: 'a dog\.' is not a template"),
        (b"a {}.\n\xff {}\n", r"prompts\.txt, line 2: not UTF-8"),
        (b"a {}.\n" + b"so " * 200 + b"{}", r"prompts\.txt, line 2: .*602 characters.*most 300"),
    ],
)
def test_read_prompts_errors(tmp_path, content, problem):
    path = tmp_path / "prompts.txt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_prompts(path)
