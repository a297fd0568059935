"""Build the tables of WordNet 3.0 nouns that are part of the package.

The dictionary comes with Debian's package ``wordnet-base``. Its folder contains ``data.noun``
(synsets) and ``index.noun`` (the order of a word's senses)::

    apt-get install wordnet-base
    python scripts/build_wordnet.py /usr/share/wordnet

The same dictionary and version of zlib give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from nouncut.words.wordnet import LEXICONS

DATA = Path(__file__).resolve().parents[1] / "src" / "nouncut" / "words" / "data"
TABLE_NAME = "wordnet-3.0-nouns.tsv.gz"
GLOSSES_NAME = "wordnet-3.0-glosses.txt.gz"
MENTIONS_NAME = "wordnet-3.0-mentions.tsv.gz"
LICENSE_NAME = "WORDNET-LICENSE.txt"
# The lexicographer files of nouns are numbered from 3 in lexnames(5WN), which is not part of
# wordnet-base.
FIRST_LEXICON = 3


def build_rows(dictionary: Path) -> list[tuple[str, ...]]:
    """Return the columns of every synset, in the order of ``data.noun``."""
    ranks = _sense_ranks(dictionary / "index.noun")
    return [_table_row(line, ranks) for line in _entries(dictionary / "data.noun")]


def build_tables(rows: list[tuple[str, ...]]) -> dict[str, str]:
    """Return the texts of the files: one column per line, which is fast to read, and glosses."""
    *columns, glosses = zip(*rows, strict=True)
    columns.append(tuple(map(str, count_descendants(rows))))
    return {
        TABLE_NAME: "\n".join("\t".join(column) for column in columns),
        GLOSSES_NAME: "\n".join(glosses),
        MENTIONS_NAME: count_mentions(glosses),
    }


def count_mentions(glosses: Sequence[str]) -> str:
    """Return the words of all glosses and, in a second line, how often each occurs."""
    # About a million words of plain English, which makes a frequency list unnecessary.
    counts = Counter(word for gloss in glosses for word in re.findall("[a-z]+", gloss.lower()))
    words = sorted(counts)
    return "\t".join(words) + "\n" + "\t".join(str(counts[word]) for word in words)


def count_descendants(rows: list[tuple[str, ...]]) -> list[int]:
    """Return how many synsets are at or below each synset."""
    parents = {id_: hypernyms.split() for id_, *_, hypernyms, _ in rows}
    counts: Counter[str] = Counter()
    for id_ in parents:
        reached = [id_]
        for above in reached:
            reached += (parent for parent in parents.get(above, ()) if parent not in reached)
        counts.update(reached)
    return [counts[id_] for id_ in parents]


def read_license(dictionary: Path) -> str:
    """Return Princeton's licence: the numbered lines at the start of ``data.noun``."""
    with (dictionary / "data.noun").open(encoding="ascii") as file:
        numbered = [line for line in file if line.startswith("  ")]
    return "".join(re.sub(r"^  \d+ ", "", line).rstrip() + "\n" for line in numbered)


def main(options: list[str] | None = None) -> None:
    """Write the tables and the licence into the package."""
    parser = argparse.ArgumentParser(description="Build the package's tables of WordNet nouns.")
    parser.add_argument("dictionary", type=Path, help="folder with data.noun and index.noun")
    parser.add_argument("--output", type=Path, default=DATA, help="folder to write into")
    arguments = parser.parse_args(options)
    rows = build_rows(arguments.dictionary)
    arguments.output.mkdir(parents=True, exist_ok=True)
    n_bytes = 0
    for name, text in build_tables(rows).items():
        compressed = gzip.compress(text.encode("ascii"), mtime=0)
        (arguments.output / name).write_bytes(compressed)
        n_bytes += len(compressed)
    licence = read_license(arguments.dictionary).encode("ascii")
    (arguments.output / LICENSE_NAME).write_bytes(licence)
    print(f"{len(rows):,} synsets, {n_bytes:,} bytes")


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
    """Return id, lexicographer file, named entity or not, words, ranks, hypernyms, gloss."""
    fields, gloss = line.split(" | ", maxsplit=1)
    offset, lexicon, _, n_words, *rest = fields.split()
    # Words alternate with their numbers in the lexicographer file. Then follow pointers of four
    # fields each: symbol, offset, part of speech, source and target. The number of words is
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
