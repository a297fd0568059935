"""What MkDocs does beside rendering pages: code blocks run, references and llms.txt are made.

``mkdocs build --strict`` calls these functions. Results of code blocks are kept in build/website
until the page, nouncut or these scripts change.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

from blocks import find_blocks, with_outputs
from command_pages import describe_commands
from formulas import put_formulas, take_formulas

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "website"
# Pages of the site that are files beside docs/.
PROJECT = {"CONTRIBUTING.md": "contributing.md", "SECURITY.md": "security.md"}
FIRST = "first-run"
log = logging.getLogger("mkdocs.website")
COMMANDS = "<!-- commands -->"
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|mailto:|#)([^)\s]+)\)")
_OUTSIDE = re.compile(
    r"<(?:script|img|iframe)[^>]+src=\"?(?:https?:)?//|<link[^>]+stylesheet[^>]+href=\"?(?:https?:)?//"
)
_formulas: dict[str, list[str]] = {}


def on_files(files: Any, config: Any) -> Any:
    """Run the code of all pages, and add what it made and the project's own files."""
    pages = [Path(file.abs_src_path) for file in files.documentation_pages()]
    pages = [page for page in pages if any(b.runs for b in find_blocks(page.read_text("utf-8")))]
    # The first page encodes the photographs and nouns for all others.
    pages.sort(key=lambda page: page.stem != FIRST)
    run_page(pages[0])
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run_page, pages[1:]))
    for page in pages:
        for path in sorted((WORK / page.stem / "shown").rglob("*")):
            if path.is_file():
                name = f"{page.stem}/{path.relative_to(WORK / page.stem / 'shown').as_posix()}"
                files.append(File.generated(config, name, abs_src_path=str(path)))
    for name, address in PROJECT.items():
        text = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, address, content=inside_links(text)))
    for path in sorted((ROOT / "examples").glob("*.py")):
        files.append(File.generated(config, f"examples/{path.name}", abs_src_path=str(path)))
    return files


def inside_links(text: str) -> str:
    """Return a page whose links stay in the site; other files of the repository lose theirs."""

    def replace(match: re.Match[str]) -> str:
        label, target = match.groups()
        path, _, anchor = target.removeprefix("../").partition("#")
        path = path.removeprefix("docs/")
        if path == "README.md":
            path = "index.md"
        path = PROJECT.get(path, path)
        is_page = path.startswith("examples/") and path.endswith(".py")
        is_page = is_page or path in PROJECT.values() or (ROOT / "docs" / path).is_file()
        address = path + ("#" + anchor if anchor else "")
        return f"[{label}]({address})" if is_page else label

    return _LINK.sub(replace, text)


def run_page(page: Path) -> None:
    """Run the code of a page in a folder of its own, unless nothing changed."""
    folder = WORK / page.stem
    key = digest(page)
    if (folder / "digest").exists() and (folder / "digest").read_text() == key:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if page.stem == FIRST:  # It tells about a first run.
        shutil.rmtree(WORK / "cache", ignore_errors=True)
    environment = {
        **os.environ,
        "COLUMNS": "76",
        "HF_HUB_OFFLINE": "1",
        "NO_COLOR": "1",
        "NOUNCUT_CACHE": str(WORK / "cache"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }
    start = time.monotonic()
    command = [sys.executable, str(HERE / "run_page.py"), str(page), str(folder)]
    finished = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if finished.returncode:
        raise SystemExit(f"The code of {page.name} failed.")
    log.info("%s ran in %.0f s", page.name, time.monotonic() - start)
    (folder / "outputs.json").write_text(finished.stdout, "utf-8")
    (folder / "digest").write_text(key)


def digest(page: Path) -> str:
    """Return a hash of all that the outputs of a page depend on."""
    ours = [HERE / "blocks.py", HERE / "run_page.py", *sorted(HERE.glob("site_*.py"))]
    # With the photographs of the demo and other data.
    sources = [path for path in sorted((ROOT / "src").rglob("*")) if path.is_file()]
    code = "".join(block.code for block in find_blocks(page.read_text("utf-8")) if block.runs)
    total = hashlib.sha256(code.encode())
    for path in (path for path in [*sources, *ours] if path.suffix != ".pyc"):
        total.update(path.name.encode() + path.read_bytes())
    return total.hexdigest()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Put outputs behind the code that made them, and fill in what is generated."""
    source = page.file.src_uri
    file = WORK / Path(source).stem / "outputs.json"
    markdown = with_outputs(markdown, json.loads(file.read_text("utf-8")) if file.exists() else [])
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, describe_commands())
    if page.meta.get("formulas"):
        markdown, _formulas[source] = take_formulas(markdown)
    return markdown if source in PROJECT.values() else outside_links(markdown)


def outside_links(text: str) -> str:
    """Rewrite links that leave docs/."""
    return re.sub(r"\[[^\[\]]*\]\(\.\./[^)\s]+\)", lambda match: inside_links(match[0]), text)


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Put the formulas into the page."""
    return put_formulas(html, _formulas.get(page.file.src_uri, []))


def on_nav(nav: Any, config: Any, **_: Any) -> Any:
    """Remember the order of the pages for llms.txt."""
    config["extra"]["pages"] = list(nav.pages)
    return nav


def on_post_build(config: Any, **_: Any) -> None:
    """Write llms.txt, and make sure that no page loads anything from elsewhere."""
    site = Path(config["site_dir"])
    lines = [f"# {config['site_name']}", f"> {config['site_description']}", "## Pages"]
    for page in config["extra"]["pages"]:
        about = page.meta.get("description")
        lines.append(f"- [{page.title}]({page.url})" + (f": {about}" if about else ""))
    (site / "llms.txt").write_text("\n\n".join(lines[:3]) + "\n\n" + "\n".join(lines[3:]) + "\n")
    for path in site.rglob("*.html"):
        if found := _OUTSIDE.search(path.read_text("utf-8")):
            raise SystemExit(f"{path.name} loads something from outside: {found[0]}")
