"""Build the table of WordNet 3.0 nouns that the package carries.

The dictionary comes with Debian's package ``wordnet-base``. Its folder holds ``data.noun``
(synsets) and ``index.noun`` (the order of a word's senses)::

    apt-get install wordnet-base
    python scripts/build_wordnet.py /usr/share/wordnet

The same dictionary gives the same table, byte for byte, under one version of liblzma.
"""

from __future__ import annotations

import argparse
import lzma
import re
from collections.abc import Iterator
from pathlib import Path

from nouncut.words.wordnet import LEXICONS

DATA = Path(__file__).resolve().parents[1] / "src" / "nouncut" / "words" / "data"
TABLE_NAME = "wordnet-3.0-nouns.tsv.xz"
LICENSE_NAME = "WORDNET-LICENSE.txt"
# lexnames(5WN), which wordnet-base leaves out, numbers the lexicographer files of nouns from 3.
FIRST_LEXICON = 3


def build_table(dictionary: Path) -> str:
    """Return the table as text: one synset per line, in the order of ``data.noun``.

    The columns, separated by tabs: id ("n" and the offset), lexicographer file, 1 for a named
    entity, words separated by bars, the rank of the synset among each word's senses, ids of
    hypernyms, gloss.

    Parameters
    ----------
    dictionary : Path
        Folder with ``data.noun`` and ``index.noun``.

    Returns
    -------
    str
        The table, without a header.
    """
    ranks = _sense_ranks(dictionary / "index.noun")
    rows = (_table_row(line, ranks) for line in _entries(dictionary / "data.noun"))
    return "".join("\t".join(row) + "\n" for row in rows)


def read_license(dictionary: Path) -> str:
    """Return Princeton's licence, which opens ``data.noun`` on numbered lines.

    Parameters
    ----------
    dictionary : Path
        Folder with ``data.noun``.

    Returns
    -------
    str
        The licence.
    """
    with (dictionary / "data.noun").open(encoding="ascii") as file:
        numbered = [line for line in file if line.startswith("  ")]
    return "".join(re.sub(r"^  \d+ ", "", line).rstrip() + "\n" for line in numbered)


def main(options: list[str] | None = None) -> None:
    """Write the table and the licence into the package.

    Parameters
    ----------
    options : list of str, optional
        The command line; the process's own by default.
    """
    parser = argparse.ArgumentParser(description="Build the package's table of WordNet nouns.")
    parser.add_argument("dictionary", type=Path, help="folder with data.noun and index.noun")
    parser.add_argument("--output", type=Path, default=DATA, help="folder to write into")
    arguments = parser.parse_args(options)
    table = build_table(arguments.dictionary).encode("ascii")
    compressed = lzma.compress(table, preset=9 | lzma.PRESET_EXTREME)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / TABLE_NAME).write_bytes(compressed)
    licence = read_license(arguments.dictionary).encode("ascii")
    (arguments.output / LICENSE_NAME).write_bytes(licence)
    print(f"{len(table.splitlines()):,} synsets, {len(compressed):,} bytes")


def _entries(path: Path) -> Iterator[str]:
    with path.open(encoding="ascii") as file:
        for line in file:
            if not line.startswith("  "):
                yield line.rstrip()


def _sense_ranks(path: Path) -> dict[tuple[str, str], int]:
    ranks = {}
    for line in _entries(path):
        word, _, n_senses, *rest = line.split()
        for rank, offset in enumerate(rest[-int(n_senses) :], start=1):
            ranks[word, offset] = rank
    return ranks


def _table_row(line: str, ranks: dict[tuple[str, str], int]) -> tuple[str, ...]:
    fields, gloss = line.split(" | ", maxsplit=1)
    offset, lexicon, _, n_words, *rest = fields.split()
    # Words alternate with identifiers inside the lexicographer file, and pointers follow, four
    # fields each: symbol, offset, part of speech, source and target. The count of words is
    # hexadecimal.
    end = 2 * int(n_words, 16)
    words, pointers = rest[:end:2], rest[end + 1 :]
    symbols, targets = pointers[::4], pointers[1::4]
    pairs = list(zip(symbols, targets, strict=True))
    parents = [target for kind in ("@", "@i") for symbol, target in pairs if symbol == kind]
    return (
        f"n{offset}",
        LEXICONS[int(lexicon) - FIRST_LEXICON],
        str(int("@i" in symbols)),
        "|".join(words).replace("_", " "),
        " ".join(str(ranks[word.lower(), offset]) for word in words),
        " ".join(f"n{parent}" for parent in parents),
        gloss,
    )


if __name__ == "__main__":
    main()
