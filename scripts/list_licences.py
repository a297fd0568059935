"""Write THIRD-PARTY.md: packages that nouncut needs, with their licences.

Run ``python scripts/list_licences.py`` where nouncut is installed. The facts come from the metadata
of the installed packages.
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

TARGET = Path(__file__).parents[1] / "THIRD-PARTY.md"
INTRODUCTION = """\
# Packages that nouncut needs

`scripts/list_licences.py` writes this list from the metadata of the packages. The versions are
those of the environment in which it ran. The packages are installed beside nouncut and are not part
of it. nouncut itself carries work of others in three places, each with its licence: [WordNet's
nouns](src/nouncut/words/data/WORDNET-LICENSE.txt), [CLIP's class names and
prompts](src/nouncut/paper/datasets/data/CLIP-LICENSE.txt) and the [demo's
photographs](src/nouncut/cli/photographs/CREDITS.md).

"""
_LINKS = ("source", "source code", "repository", "github", "homepage", "home", "documentation")
# Long texts in the field are licences in full.
_LONGEST_NAME = 60


def direct_requirements(package: str) -> list[str]:
    """Return names of the packages that a package always needs on this machine."""
    requirements = map(Requirement, distribution(package).requires or ())
    return sorted(
        normalised(one.name)
        for one in requirements
        if one.marker is None or one.marker.evaluate({"extra": ""})
    )


def all_requirements(package: str) -> list[str]:
    """Return names of all packages that an installation brings."""
    found, waiting = set[str](), direct_requirements(package)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += direct_requirements(name)
    return sorted(found)


def normalised(name: str) -> str:
    """Return a package's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(package: Distribution) -> str:
    """Return the licence that a package declares, or the title of its licence file."""
    stated = _field(package, "License-Expression") or _field(package, "License")
    prefix = "License :: OSI Approved :: "
    classified = [one.removeprefix(prefix) for one in package.metadata.get_all("Classifier", [])]
    named = [one for one in classified if one.endswith(("License", "(MPL 2.0)"))]
    is_name = 0 < len(stated) <= _LONGEST_NAME and "\n" not in stated and stated != "UNKNOWN"
    return stated if is_name else " or ".join(named) or _title_of_file(package)


def _field(package: Distribution, name: str) -> str:
    return str(package.metadata.get_all(name, [""])[0])


def _title_of_file(package: Distribution) -> str:
    for file in package.files or ():
        if "LICEN" in file.name.upper():
            lines = [line.strip() for line in file.read_text().splitlines()]
            return next((line for line in lines if line), "not declared")
    return "not declared"


def link(package: Distribution) -> str:
    """Return the address of a package's source or home page."""
    pairs = (one.split(", ", 1) for one in package.metadata.get_all("Project-URL", []))
    named = {label.lower(): address for label, address in pairs}
    chosen = next((named[label] for label in _LINKS if label in named), None)
    return chosen or _field(package, "Home-page") or next(iter(named.values()), "")


def table(names: list[str]) -> str:
    """Return a Markdown table of packages."""
    rows = ["| package | version | licence | source |", "|---|---|---|---|"]
    for name in names:
        package = distribution(name)
        cells = (name, package.version, licence(package), f"<{link(package)}>")
        rows.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(rows)


def main() -> None:
    """Write the list."""
    direct = direct_requirements("nouncut")
    brought = [name for name in all_requirements("nouncut") if name not in direct]
    text = f"{INTRODUCTION}{table(direct)}\n\nThese packages bring others along:\n\n"
    TARGET.write_text(f"{text}{table(brought)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
