"""Run the code blocks of a page, and print what each of them writes as a JSON list.

Run it with ``python run_page.py PAGE FOLDER``. All blocks of a page work in the same folder, and
its Python blocks share their variables.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from blocks import Block, find_blocks

# What stands in the outputs instead of the folder where the page ran.
HOME = "/home/you"
# Steps that take long, which a terminal shows as a bar: "encoding images: 8 of 120 files, 6 s".
PROGRESS = re.compile(r"[a-z][a-z ]+: .*\b\d+ (?:s|min)\b")


def run_bash(code: str) -> str:
    """Run commands, and return what they print; the first one that fails ends the build."""
    finished = subprocess.run(
        ["bash", "-euc", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if finished.returncode:
        raise SystemExit(f"{code}\nfailed with exit code {finished.returncode}:\n{finished.stdout}")
    return finished.stdout


def run_python(code: str, variables: dict[str, Any], *, shows_value: bool = True) -> str:
    """Run Python as a notebook does: the value of a last expression is shown."""
    tree = ast.parse(code)
    ends_with_value = shows_value and tree.body and isinstance(tree.body[-1], ast.Expr)
    last = tree.body.pop() if ends_with_value else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<page>", "exec"), variables)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<page>", "eval"), variables)
            if value is not None:
                print(value)
    return printed.getvalue()


def run_block(block: Block, variables: dict[str, Any]) -> str:
    """Return what a block prints."""
    if block.language == "bash":
        printed = run_bash(block.code)
    else:
        printed = run_python(block.code, variables, shows_value=not block.is_hidden)
    return tidy(with_short_paths(printed, os.getcwd()))


def with_short_paths(printed: str, folder: str) -> str:
    """Return an output that was printed in another folder; the columns of tables stay aligned."""
    n_shorter = len(folder) - len(HOME)
    if n_shorter <= 0 or not re.search(re.escape(folder) + r"\S*  ", printed):
        return printed.replace(folder, HOME)
    # The heading above a column of paths is as wide as the longest of them.
    gap = re.compile(f" {{{n_shorter}}}(?=  )")
    lines = printed.splitlines(keepends=True)
    return "".join(
        line.replace(folder, HOME) if folder in line else gap.sub("", line, count=1)
        for line in lines
    )


def tidy(printed: str) -> str:
    """Return an output without the progress of slow steps and without spaces at the ends."""
    lines = [line.rstrip() for line in printed.splitlines() if not PROGRESS.match(line)]
    return "\n".join(lines).strip("\n")


def main() -> None:
    """Run the blocks of a page."""
    page, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    os.chdir(folder)
    variables: dict[str, Any] = {"__name__": "page"}
    blocks = [block for block in find_blocks(page.read_text("utf-8")) if block.runs]
    json.dump([run_block(block, variables) for block in blocks], sys.stdout)


if __name__ == "__main__":
    main()
