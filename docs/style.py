"""Check the prose of the pages and of the README: `python docs/style.py`.

Numbers have one style (0.47, 95%), some words are not used, and words are spelt as in British English. Code, formulas
and addresses are left out. Spelling needs the word lists of codespell; without them the output says so.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
# Fenced blocks, display formulas, code, formulas, targets of links, tags of HTML.
NO_PROSE = r"^(```|:::).*?^\1|^\$\$.*?\$\$|`[^`]*`|\$[^$\n]*\$|\]\([^)]*\)|https?://\S+|<[a-z/!][^>\n]*>"
NUMBERS = {
    r"(?<![\w.)])\.\d": "write 0.47, not .47",
    r"\d %": "write 95%, without a space",
    r"\b\d+ ?percent\b": "write 95%",
}
BANNED = {
    "plain vote": "majority vote",
    "raw vote": "majority vote",
    "ground-truth": "ground truth",
    "utili[sz]e": "use",
    "leverage": "use",
    "in order to": "to",
    "seamless(ly)?": "say what is done",
    "effortless(ly)?": "say what is done",
    "powerful": "say what it does",
    "state-of-the-art": "give the figure",
    "blazing(ly)?": "give the figure",
    "simply": "leave it out",
    "obviously": "leave it out",
    "of course": "leave it out",
    "please": "leave it out",
    "e\\.g\\.": "for example",
    "i\\.e\\.": "that is",
    "and/or": "or",
    "annotator reliability": "accuracy of workers",
}
AMERICAN = "dictionary_en-GB_to_en-US.txt"  # what is right there is wrong here
ALLOWED = {"program", "programs", "practice", "judgment", "judgments"}  # nouns that are right in both


def read_prose(text: str) -> str:
    """The text with blanks in place of what is not prose, so that lines keep their numbers."""
    return re.sub(NO_PROSE, lambda part: re.sub(r"[^\n]", " ", part[0]), text, flags=re.M | re.S)


def read_misspellings(folder: Path) -> dict[str, str]:
    """{wrong: right}, in lower case."""
    pairs = [line.split("->") for line in (folder / "dictionary.txt").read_text("utf-8").splitlines()]
    wrong = {word: right.rstrip(",") for word, right in pairs}
    for line in (folder / AMERICAN).read_text("utf-8").splitlines():
        british, american = line.rstrip(",").split("->")
        wrong.update({word.strip(): british for word in american.split(",") if word.strip()})
        wrong.pop(british, None)
    return {word: right for word, right in wrong.items() if word not in ALLOWED}


def check(text: str, misspellings: dict[str, str]) -> list[tuple[int, str]]:
    """The lines that are not in style, each with what to do."""
    prose = read_prose(text)
    rules = {**NUMBERS, **{rf"(?i)\b{word}(?!\w)": f"banned: {remedy}" for word, remedy in BANNED.items()}}
    found = [
        (prose.count("\n", 0, hit.start()) + 1, f"{hit[0]!r}: {remedy}")
        for rule, remedy in rules.items()
        for hit in re.finditer(rule, prose)
    ]
    for hit in re.finditer(r"(?<![\w-])[a-z]+(?![\w-])", prose):
        if right := misspellings.get(hit[0]):
            found.append((prose.count("\n", 0, hit.start()) + 1, f"{hit[0]!r}: spelt {right}"))
    return sorted(found)


def main() -> int:
    try:
        import codespell_lib
    except ImportError:
        misspellings = {}
        print("spelling of pages: not checked, since there is no codespell")
    else:
        misspellings = read_misspellings(Path(codespell_lib.__file__).parent / "data")
    pages = [HERE.parent / "README.md", *sorted(HERE.glob("**/*.md"))]
    found = {page: check(page.read_text("utf-8"), misspellings) for page in pages}
    for page, hits in found.items():
        for line, what in hits:
            print(f"{page.relative_to(HERE.parent)}:{line}: {what}")
    n_bad = sum(map(bool, found.values()))
    print(f"style of pages: {len(pages) - n_bad} of {len(pages)} are in style")
    return int(n_bad > 0)


if __name__ == "__main__":
    sys.exit(main())
