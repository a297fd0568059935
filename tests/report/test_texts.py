"""Every text of the pages is in the catalogues, and every text of them is in the pages."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest
from markupsafe import Markup, escape

from nouncut.exports.registry import EXPORTS
from nouncut.report.said import Number, catalogues, percent, said_in, say
from nouncut.runs.settings import declarations
from nouncut.runs.word_trust import describe_trust

FOLDERS = [Path(str(files(f"nouncut.{package}"))) for package in ("report", "explore")]
TEMPLATES = sorted(path for folder in FOLDERS for path in folder.glob("templates/*.j2"))
SCRIPTS = sorted(path for folder in FOLDERS for path in folder.glob("assets/*.js"))
MODULES = sorted(path for folder in FOLDERS for path in folder.glob("*.py"))
ENGLISH = catalogues()["en"]
OTHERS = {name: texts for name, texts in catalogues().items() if name != "en"}
PLACEHOLDER = re.compile(r"\{(\w+)\}")
# Names of programs, files, columns and keys, which have no translation.
SAME_EVERYWHERE = {"nouncut", "report.html", "outlier", "assignments.parquet", "Y", "N", "L"}


def named(paths):
    return [pytest.param(path, id=f"{path.parts[-3]}-{path.name}") for path in paths]


def forms(entry) -> dict[str, str]:
    return {"": entry} if isinstance(entry, str) else entry


def first_argument(code: str) -> str:
    """Return code up to the end of its first argument."""
    depth = 0
    for at, letter in enumerate(code):
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0 or (letter == "," and depth == 0):
            return code[:at]
    return code


def without_calls(code: str) -> str:
    """Return code without the keys in calls that say a text."""
    first, *others = re.split(r"(?<![.\w])(?:say|texts\.pieces)\(", code)
    return first + "".join(rest[len(first_argument(rest)) :] for rest in others)


# What can be seen


def visible_in_template(source: str) -> list[str]:
    """Return texts and spoken attributes of a template that are written out in it."""
    # What stands for text from elsewhere must not hide the text around it.
    source = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", source, flags=re.S)
    spoken = re.findall(r'\b(?:aria-label|title|placeholder|alt)="([^"]+)"', source)
    texts = re.split(r"<[^>]*>", source)
    return [one for one in map(str.strip, texts + spoken) if is_prose(one)]


def is_prose(text: str) -> bool:
    return text not in SAME_EVERYWHERE and bool(re.search(r"[^\W\d_]", text.replace("nouncut", "")))


def visible_in_script(source: str) -> list[str]:
    """Return literals of a script that people would see: shown ones, and all that read as prose."""
    code = re.sub(r"^\s*//.*$|/\*.*?\*/", "", source, flags=re.M)
    code = without_calls(code)
    literal = r"""(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`([^`]*)`)"""
    shown = (
        r"(?:\.(?:textContent|title|placeholder|alt|ariaLabel|innerText)\s*=\s*(?:[^;\n]*[?:]\s*)?"
        r"|\b(?:toast\.say|new Error|fact|setAttribute\(\"(?:aria-label|title|alt)\",)\(?\s*"
        r'|"?\b(?:aria-label|title|placeholder|alt)"?:\s*)'
    )
    at_once = ["".join(found) for found in re.findall(shown + literal, code)]
    others = ["".join(found) for found in re.findall(literal, code)]
    prose = [one for one in others if re.search(r"^[A-Z][a-z]+\b.* |[a-z] [a-z]+ [a-z]+ ", one)]
    return [
        one
        for one in [*at_once, *prose]
        if is_prose(re.sub(r"\$\{[^}]*\}", "", one)) and not re.search(r"^rgb|system-ui|=>", one)
    ]


@pytest.mark.parametrize("path", named(TEMPLATES))
def test_templates_have_no_text_of_their_own(path):
    assert visible_in_template(path.read_text("utf-8")) == []


@pytest.mark.parametrize("path", named(SCRIPTS))
def test_scripts_have_no_text_of_their_own(path):
    assert visible_in_script(path.read_text("utf-8")) == []


def test_text_outside_the_catalogue_would_be_found():
    for template in (
        "<p>Hello</p>",
        '<p title="Hello">',
        "<b>{{ x }} and {% if y %}more{% endif %}",
    ):
        assert visible_in_template(template)
    for script in (
        'box.textContent = "Copied";',
        "box.title = isOpen ? 'Hide' : 'Show';",
        "element('p', {}, `Will write ${n} files to `);",
        'toast.say("Gone");',
        '{ "aria-label": `Open ${name}` }',
        'throw new Error("Ended");',
    ):
        assert visible_in_script(script), script


# Keys


def asked_for(source: str) -> tuple[set[str], set[str]]:
    """Return the keys in calls that say a text, and the beginnings of those that are made up."""
    calls = [
        first_argument(source[at.end() :]) for at in re.finditer(r"\b(?:say|pieces)\(", source)
    ]
    whole, beginnings = set(), set()
    for call in calls:
        beginnings |= set(re.findall(r'"([a-z_.]+\.)" ~|f"([a-z_.]+\.)\{|`([a-z_.]+\.)\$\{', call))
        whole |= set(re.findall(r'"([a-z_.]*[a-z_])"(?! [=!]=)', re.sub(r"\{.*?\}", "", call)))
    return whole, {"".join(one) for one in beginnings}


SOURCES = [path.read_text("utf-8") for path in (*TEMPLATES, *SCRIPTS, *MODULES)]
ASKED = [asked_for(source) for source in SOURCES]


def test_texts_that_are_said_are_in_the_catalogue():
    whole, beginnings = (set().union(*found) for found in zip(*ASKED, strict=True))
    assert len(whole) > 200
    assert whole - {"images", "rows"} <= set(ENGLISH)
    assert len(beginnings) > 5
    for beginning in beginnings:
        assert any(key.startswith(beginning) for key in ENGLISH), beginning


def test_texts_in_the_catalogue_are_said():
    beginnings = set().union(*(found[1] for found in ASKED))
    endings = ("images", "rows", "undo", "redo", "undo.none", "redo.none")
    everything = "\n".join(SOURCES)
    unused = [
        key
        for key in ENGLISH
        if f'"{key}"' not in everything
        and not key.startswith("runs.")
        and not any(key.removeprefix(one) in endings for one in beginnings)
    ]
    assert unused == []


def test_sentences_of_other_packages_are_known_by_their_english_text():
    known = {entry for key, entry in ENGLISH.items() if key.startswith("runs.")}
    trust = {describe_trust({"noun_trust": {"weight": weight}}) for weight in (0.1, 0.5, 0.9)}
    labels = {one.label for one in declarations().values()}
    abouts = {export.about for export in EXPORTS.values()}
    assert trust | labels | abouts <= known


# Languages


@pytest.mark.parametrize("language", OTHERS)
def test_a_translation_is_complete(language):
    texts = OTHERS[language]
    assert set(texts) == set(ENGLISH)
    for key, english in ENGLISH.items():
        assert isinstance(texts[key], str) == isinstance(english, str), key
        wanted = set(PLACEHOLDER.findall(forms(english).get("other", forms(english).get("", ""))))
        for text in forms(texts[key]).values():
            assert set(PLACEHOLDER.findall(text)) == wanted, key
            assert text.strip(), key
            assert "<" not in text, key


def test_plural_forms():
    for texts in catalogues().values():
        for key, entry in texts.items():
            if not isinstance(entry, str):
                assert "other" in entry, key
                assert all("{n}" in text for text in entry.values()) or key == "overview.warnings"
    assert say("files", n=1) == "1 file"
    assert say("files", n=0) == "0 files"
    assert say("files", n=1234) == "1,234 files"


# HTML


def test_values_are_escaped_and_elements_are_kept():
    name = "<b>&\"'{n}"
    shown = str(escape(say("cluster.rename", name=name)))
    assert "<b>" not in shown
    assert Markup(shown).striptags() == f"Rename {name}"
    label = str(said_in(aria_label=say("cluster.rename", name=name), title=say("rename")))
    assert label.count('"') == 10
    assert "<b>" not in label
    code = Markup("<code>{}</code>").format(name)
    hint = say("names.hint", command=code)
    assert hint == f"To keep them, run {name}."
    assert f'<span data-part="command">{code}</span>' in str(escape(hint))


def test_numbers_carry_their_values():
    assert str(escape(Number(1234))) == '<data value="1234">1,234</data>'
    assert Number(0.1, 3) == "0.100"
    nested = say("seconds.under", number=Number(0.1, 1))
    assert nested == "under 0.1 s"
    assert "{&#34;number&#34;:{&#34;number&#34;:&#34;0.1&#34;}}" in str(escape(nested))


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0 %"), (0.001, "under 1 %"), (0.5, "50 %"), (0.999, "over 99 %"), (1, "100 %")],
)
def test_percent(share, text):
    assert percent(share).striptags().replace("\N{NO-BREAK SPACE}", " ") == text
    assert f'value="{share}"' in percent(share)


def test_an_unknown_share():
    assert percent(None).striptags() == percent(float("nan")).striptags() == "unknown"
