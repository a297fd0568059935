"""A user's own vocabulary, from text and CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from nouncut.compute.files import AnyPath
from nouncut.compute.progress import Progress, silent
from nouncut.errors import InputError, printable_path
from nouncut.words.spelling import fold_word, tidy_word
from nouncut.words.text_files import line_error, read_lines

# Characters; WordNet's longest noun has 71.
MAX_WORD_LENGTH = 200
_WORDS_PER_REPORT = 10_000
_COLUMNS = ("noun", "word", "name")
_DELIMITERS = ",;\t"


def read_words(path: AnyPath, *, progress: Progress | None = None) -> list[str]:
    r"""Read a vocabulary from a UTF-8 file.

    Blank lines and lines that start with ``#`` are skipped. Underscores become spaces. Of words
    that differ only in case, the first is kept.

    Parameters
    ----------
    path : path-like
        A ``.txt`` file with one word per line, or a ``.csv`` file. The words of a ``.csv`` file
        are in the column called noun, word or name (case does not matter). Without such a header
        they are in the first column, from the first row on. Commas separate the fields, or
        semicolons or tabs if the first row has no comma.
    progress : callable, optional
        Called with the stage ("reading words"), the number of words done and the total.

    Returns
    -------
    list of str
        Distinct words in the order of the file.

    Raises
    ------
    InputError
        If the file cannot be read, is not UTF-8, has no words, or has a word of more than 200
        characters. The message names the file, the line and the remedy.

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
        raise InputError(
            f"{printable_path(path)} is neither a .txt nor a .csv file. Save the words as one of "
            "these."
        )
    words: dict[str, str] = {}
    found, report = list(readers[suffix](path)), progress or silent
    for done, (number, word) in enumerate(found, start=1):
        if not done % _WORDS_PER_REPORT:
            report("reading words", done, len(found))
        if len(word) > MAX_WORD_LENGTH:
            raise line_error(
                path,
                number,
                f"the word has {len(word)} characters, but at most {MAX_WORD_LENGTH} are allowed. "
                "Write one word per line.",
            )
        words.setdefault(fold_word(word), tidy_word(word))
    # A word of underscores only becomes empty.
    words.pop("", None)
    if not words:
        raise InputError(f"{printable_path(path)} has no words. Write one word per line.")
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
            problem = f"column {column + 1} has no word. Fill it in or remove the row."
            raise line_error(path, number, problem)


def _csv_records(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the line on which each row starts, and the row's cells."""
    lines = read_lines(path)
    first = lines[0].text if lines else ""
    delimiter = next((mark for mark in _DELIMITERS if mark in first), ",")
    rows = csv.reader((f"{line.text}\n" for line in lines), delimiter=delimiter, strict=True)
    while rows.line_num < len(lines):
        number = lines[rows.line_num].number
        try:
            yield number, next(rows)
        except csv.Error as error:
            problem = f"not valid CSV ({error}). Check its quotation marks."
            raise line_error(path, number, problem) from None


def _word_column(header: Sequence[str]) -> int | None:
    names = [cell.strip().lower() for cell in header]
    return next((names.index(name) for name in _COLUMNS if name in names), None)
