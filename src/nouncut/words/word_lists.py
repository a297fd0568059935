"""A user's own words, from text and CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from os import PathLike
from pathlib import Path

from nouncut.words.spelling import fold_word, tidy_word
from nouncut.words.text_files import read_lines

MAX_WORD_LENGTH = 200
"""Characters of the longest word accepted; WordNet's longest noun has 71."""

_COLUMNS = ("noun", "word", "name")
_DELIMITERS = ",;\t"


def read_words(path: str | PathLike[str]) -> list[str]:
    r"""Read a list of words.

    The file is UTF-8. Blank lines and lines that start with ``#`` are skipped. Words are
    stripped, their underscores become spaces, and of words that differ in case only the first
    is kept.

    Parameters
    ----------
    path : path-like
        A ``.txt`` file with one word per line, or a ``.csv`` file. In a ``.csv`` file the words
        are the column named noun, word or name in the first row (case does not matter), or else
        the first column, first row included. Fields are separated by commas, or by semicolons
        or tabs where the first row has those and no comma.

    Returns
    -------
    list of str
        Distinct words in the order of the file.

    Raises
    ------
    ValueError
        If the file is not UTF-8, has no words, or has a word of more than `MAX_WORD_LENGTH`
        characters. The message names the file and the line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from nouncut.words.word_lists import read_words
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "bears.txt")
    ...     _ = path.write_text("# my bears\npolar_bear\nPanda\npanda\n")
    ...     read_words(path)
    ['polar bear', 'Panda']
    """
    path = Path(path)
    readers = {".txt": _text_words, ".csv": _csv_words}
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise ValueError(
            f"{path} is neither a .txt nor a .csv file. Save the words as one of these."
        )
    # Nothing but underscores tidies up to the empty word, which is as good as a blank line.
    words = {"": ""}
    for number, word in readers[suffix](path):
        if len(word) > MAX_WORD_LENGTH:
            raise ValueError(
                f"{path}, line {number}: the word has {len(word)} characters, and at most "
                f"{MAX_WORD_LENGTH} are accepted. Write one word per line."
            )
        words.setdefault(fold_word(word), tidy_word(word))
    del words[""]
    if not words:
        raise ValueError(f"{path} has no words. Write one word per line.")
    return list(words.values())


def _text_words(path: Path) -> Iterator[tuple[int, str]]:
    for number, text in read_lines(path):
        yield number, text.strip()


def _csv_words(path: Path) -> Iterator[tuple[int, str]]:
    records = _csv_records(path)
    first = next(records, None)
    if first is None:
        return
    column = _word_column(first[1])
    has_header = column is not None
    column = column or 0
    for number, cells in records if has_header else chain([first], records):
        word = cells[column].strip() if column < len(cells) else ""
        if word:
            yield number, word
        elif any(cell.strip() for cell in cells):
            raise ValueError(
                f"{path}, line {number}: column {column + 1} has no word. Fill it in or remove "
                "the row."
            )


def _csv_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of every row and the line that the row starts on."""
    lines = read_lines(path)
    first = lines[0].text if lines else ""
    delimiter = next((mark for mark in _DELIMITERS if mark in first), ",")
    rows = csv.reader((f"{line.text}\n" for line in lines), delimiter=delimiter, strict=True)
    while rows.line_num < len(lines):
        number = lines[rows.line_num].number
        try:
            yield number, next(rows)
        except csv.Error as error:
            raise ValueError(f"{path}, line {number}: not valid CSV ({error}).") from None


def _word_column(header: Sequence[str]) -> int | None:
    names = [cell.strip().lower() for cell in header]
    return next((names.index(name) for name in _COLUMNS if name in names), None)
