"""The documentation: code runs or says why not, options exist, links lead somewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from nouncut.runs.tables import SCHEMAS

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "website"))

from blocks import CODE, DATA, find_blocks, with_outputs, without_blocks  # noqa: E402
from command_pages import commands, describe_commands, option_names  # noqa: E402
from run_page import HOME, run_bash, run_python, tidy, with_short_paths  # noqa: E402

DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS]
COMMAND = re.compile(r"\b(nouncut(?: [a-z][a-z-]*){1,2})\b([^|;&#`\n]*)")
KNOWN = commands()
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")


def page_names(page: Path) -> str:
    return page.name


@pytest.mark.parametrize("page", PAGES, ids=page_names)
def test_every_block_runs_or_says_why_not(page):
    text = page.read_text("utf-8")
    fences = re.findall(r"^\s*```", text, re.MULTILINE)
    blocks = list(find_blocks(text))
    assert len(fences) == 2 * sum(not block.is_hidden for block in blocks)
    for block in blocks:
        assert block.language in (*CODE, *DATA), block.code
        if page in DOCS or block.reason or block.language in DATA:
            continue
        # Outside docs/ nothing is run by the site: pytest runs doctests, .ci/run the tests.
        is_test_command = text[: block.start].endswith("<!-- test command -->\n")
        assert is_test_command or block.code.startswith(">>> "), block.code


@pytest.mark.parametrize("page", PAGES, ids=page_names)
def test_commands_do_not_hide_from_the_rule(page):
    text = page.read_text("utf-8")
    rest = without_blocks(text)
    assert re.findall(r"^ {4,}(?:\$ |nouncut |pip |python3? ).*", rest, re.MULTILINE) == []
    data = "".join(block.code for block in find_blocks(text) if block.language in DATA)
    assert re.findall(r"^(?:\$ |nouncut |pip |python3? ).*", data, re.MULTILINE) == []


@pytest.mark.parametrize("page", PAGES, ids=page_names)
def test_code_that_does_not_run_could(page):
    for block in find_blocks(page.read_text("utf-8")):
        if block.reason and block.language == "python":
            compile(block.code, page.name, "exec")


@pytest.mark.parametrize("page", PAGES, ids=page_names)
def test_commands_have_the_options_that_are_shown(page):
    text = page.read_text("utf-8")
    code = [block.code for block in find_blocks(text) if block.language == "bash"]
    inline = re.findall(r"`(nouncut [^`]*)`", without_blocks(text))
    code += [" ".join(words.split()) for words in inline]
    for name, arguments in (match for part in code for match in COMMAND.findall(part)):
        name = name if name in KNOWN else " ".join(name.split()[:2])
        assert name in KNOWN, name
        # The options of a verb follow the run: nouncut edit RUN merge 3 7 --yes.
        verbs = [f"{name} {word}" for word in arguments.split() if f"{name} {word}" in KNOWN]
        allowed = set.union(*(option_names(KNOWN[one]) for one in (name, *verbs)))
        unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "", arguments)
        used = re.findall(r"(?<![\w=-])(--?[a-z][a-z-]*)", unquoted)
        assert set(used) <= allowed, f"{name}{arguments}"


def anchors(page: Path) -> set[str]:
    text = re.sub(r"```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    if page.name == "commands.md":
        text += describe_commands()
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", one).strip().lower()) for one in plain}


@pytest.mark.parametrize("page", PAGES, ids=page_names)
def test_links_lead_to_files_and_headings(page):
    targets = LINK.findall(without_blocks(page.read_text("utf-8")))
    for target in targets:
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        # Files in a folder named after a page are made when that page runs.
        made = (page.parent / path).parent == page.with_suffix("") and page in DOCS
        assert made or linked.exists(), target
        assert not anchor or anchor in anchors(linked), target


def test_pages_are_in_the_navigation():
    listed = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    made = {"contributing.md", "security.md"}
    assert sorted({*listed} - made) == [page.name for page in DOCS]


def test_all_columns_of_a_run_are_described():
    text = (ROOT / "docs" / "run-directory.md").read_text("utf-8")
    for name, schema in SCHEMAS.items():
        table = text[text.index(f"| `{name}.parquet` | one row") :].split("\n\n", 1)[0]
        assert {*schema.names} <= {*re.findall(r"`(\w+)`", table)}, name


def test_a_block_is_followed_by_what_it_prints():
    page = "```python\n1 + 1\n```\n\n<!-- not run: no\n-->\n<!-- run\nprint(3)\n-->\n"
    blocks = [block for block in find_blocks(page) if block.runs]
    outputs = [run_python(block.code, {}).strip() for block in blocks]
    assert outputs == ["2", "3"]
    expected = (
        "```python\n1 + 1\n```\n\n``` { .text .output }\n2\n```\n\n<!-- not run: no\n-->\n3\n"
    )
    assert with_outputs(page, outputs) == expected


def test_a_marked_block_is_shown_without_its_mark():
    page = "<!-- not run: needs a cluster -->\n```bash\nexit 1\n```\n"
    assert with_outputs(page, []) == "```bash\nexit 1\n```\n"


def test_a_command_that_fails_ends_the_build():
    assert run_bash("echo a; echo b >&2") == "a\nb\n"
    with pytest.raises(SystemExit, match="exit code 3"):
        run_bash("exit 3\necho not reached")


def test_outputs_do_not_depend_on_how_slow_the_machine_was():
    slow = "encoding images: 8 of 120 files, 6 s, about 1 min 18 s left\ncounting groups: 2 s\n"
    rest = "120 images in 6 groups.\nReport: nouncut-runs/a/report.html"
    assert tidy(f"\n{slow}{rest}  \n") == rest


def test_columns_stay_aligned_when_paths_get_shorter():
    folder = "/somewhere/far/away"
    rows = [("image", "group"), (f"{folder}/1.jpg", "cat"), (f"{folder}/12.jpg", "dog")]
    printed = "".join(f"{path:30}  {group}\n" for path, group in rows) + "2 images.\n"
    width = 30 - len(folder) + len(HOME)
    expected = "".join(f"{path.replace(folder, HOME):{width}}  {group}\n" for path, group in rows)
    assert with_short_paths(printed, folder) == expected + "2 images.\n"
    assert (
        with_short_paths(f"Report: {folder}/report.html", folder) == f"Report: {HOME}/report.html"
    )


def test_every_command_is_described():
    text = describe_commands()
    headings = re.findall(r"^##+ (.+)$", text, re.MULTILINE)
    assert headings == list(commands())
    assert "nouncut edit RUN merge GROUP..." in text
    assert "`-k, --clusters" in text
