"""The file of several questions: an archive with a header and the file of each model."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from typing import Any

from ..arguments import MOST_QUESTIONS

FORMAT, VERSION, HEADER = "consilience-questions", 1, "questions.json"
# What a damaged archive raises; a RuntimeError where it calls for a password, or for another version.
UNREADABLE = (OSError, EOFError, ValueError, OverflowError, RuntimeError, zipfile.BadZipFile)
# The largest header of a file that may come from anywhere.
LARGEST_HEADER = 1 << 20


def name_member(number: int) -> str:
    """Return what the file of a question is called in an archive."""
    return f"models/{number:04d}"


def holds_questions(path: str) -> bool:
    """Tell whether a file holds several questions."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()[:1] == [HEADER]
    except UNREADABLE:
        return False


def read_header(archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo]) -> dict[str, Any]:
    """Return the header of a file of questions, if its members are those that it calls for.

    Nothing is compressed, so that no member is larger than the file.
    """
    if members[0].file_size > LARGEST_HEADER or any(each.compress_type != zipfile.ZIP_STORED for each in members):
        raise ValueError("not as it is written")
    header: dict[str, Any] = json.loads(archive.read(members[0]))
    names = header["questions"]
    if header["format"] != FORMAT or header["version"] != VERSION or not all(isinstance(each, str) for each in names):
        raise ValueError("another format")
    if not 0 < len(set(names)) == len(names) == len(members) - 1 <= MOST_QUESTIONS:
        raise ValueError("other members")
    if [each.filename for each in members[1:]] != [name_member(number) for number in range(len(names))]:
        raise ValueError("other names")
    return header
