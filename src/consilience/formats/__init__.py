"""Reading and writing the files that answers come from and labels go to, and the register of their formats.

A new format is a new file in this folder and one line in `FORMATS`. Importing this module costs nothing, so that the
command line can list the formats. The file of a format is imported when the format is first used. Other files are
shared: `files` (what is at a path) by all formats, `json_lines` (records) and `annotation_tools` by annotation tools,
`logs` by those of evaluations and volunteers, `arrays` by masks. `reading` makes tables of files, `sources` opens
whatever is at a path and writes it back, `scanning` sorts tables larger than memory, with `partition` for the order of
their rows, and `writing` replaces files.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa


LineFinder: TypeAlias = Callable[[str], Iterator[int]]

# Among the endings of outputs: a folder, whose name has none.
FOLDER = ""


class Verdict(NamedTuple):
    """The fused label of an item, or the list of its tags, with the probability of each if that is known."""

    label: object
    confidence: float | None
    chances: list[float] | None = None

    @property
    def labels(self) -> list[object]:
        """All of its labels."""
        return list(self.label) if isinstance(self.label, list) else [self.label]


@dataclass(frozen=True, kw_only=True)
class Codec:
    """What the file of a format offers; None for what the format does not have.

    Attributes
    ----------
    read : callable
        Takes a path and the names of the columns to read (None: all). Returns a `pyarrow.Table`, or a
        `pyarrow.RecordBatchReader` for files that are larger than memory, with those of them that exist. Formats of
        text open the path with `files.open_input`, since it may be compressed, or be that of standard input.
    all_text : bool
        Whether `read` returns every column as text, in which whole numbers are written as such.
    write : callable
        Takes an iterable of `pyarrow.Table`, whose rows follow each other, and a path, whose suffix is one of the
        format's.
    recognise : callable
        Takes the first bytes of a file, decompressed, and its path. Returns True only where the content leaves no
        doubt that the file has this format, whatever its suffix.
    find_lines : callable
        Takes a path. Yields the number of the line on which each row starts, counted from 1.
    load : callable
        Takes a path, of a file or of a folder. Returns what the kind of the format is: the `Spans` that workers marked,
        or the `Masks` that readers drew.
    save : callable
        Takes such an object and a path, which is that of a folder for masks. Annotations of several workers stay apart.
        Spans with a confidence are predictions, where the format has these. If the spans have an origin, it is a file
        of this format that holds their documents, and what else it has is kept.
    is_at : callable
        Takes a path. Returns True where there is a folder, or a file that is no text, of this format.
    carries : frozenset of str
        What `save` can write beside the spans of all workers: "confidence", "tokens", "gold", "white space".
    write_labels : callable
        Takes a `Verdict` for each item, by ids as text, the question that was asked, where there are several, the path
        that the answers were read from, and a path. Writes what was read, with a label for each item. Formats without
        it hold no answers about whole items.
    """

    read: Callable[[str, Collection[str] | None], pa.Table | pa.RecordBatchReader] | None = None
    all_text: bool = False
    write: Callable[[Iterable[pa.Table], str], None] | None = None
    recognise: Callable[[bytes, str], bool] | None = None
    find_lines: LineFinder | None = None
    load: Callable[[str], Any] | None = None
    save: Callable[[Any, str], None] | None = None
    is_at: Callable[[str], bool] | None = None
    carries: frozenset[str] = frozenset()
    write_labels: Callable[[dict[str, Verdict], str | None, str, str], None] | None = None


@dataclass(frozen=True)
class Format:
    """A file format.

    Attributes
    ----------
    name : str
        What users call it, as in ``--format``.
    suffixes : tuple of str
        What names of such files end in, in lower case; the usual suffix first.
    home : str
        Where its `Codec` is: "module:name", the module in this folder.
    title : str
        What it is, in a few words.
    kind : str
        "table", "spans" marked in texts, perhaps with answers about whole texts, "answers" in logs, or "masks".
    outputs : tuple of str
        What paths end in to which results are written in this format, if they come from such a source. Results from
        other sources, and to other paths, are tables.
    text : bool
        Whether it is text in UTF-8. Text may also be compressed, with .gz after the suffix.
    read_only : bool
        Whether its `Codec` can read tables, but not write them.
    head : tuple of bytes
        What files begin with, after white space; any other is not of this format.
    never : tuple of str
        What names of files end in that are not of this format, whatever they hold.
    """

    name: str
    suffixes: tuple[str, ...]
    home: str
    title: str = ""
    kind: str = "table"
    outputs: tuple[str, ...] = ()
    text: bool = False
    read_only: bool = False
    head: tuple[bytes, ...] = (b"",)
    never: tuple[str, ...] = ()

    @cached_property
    def codec(self) -> Codec:
        """The functions that read and write the format."""
        module, name = self.home.split(":")
        codec: Codec = getattr(import_module(f".{module}", __package__), name)
        return codec

    def fits(self, path: str) -> bool:
        """Tell whether a path has a suffix of this format."""
        name = path.lower()
        return name.endswith(self.suffixes) or (self.text and name.removesuffix(".gz").endswith(self.suffixes))


# fmt: off
_JSON, _LINES = (".json",), (".jsonl", ".ndjson")
_OPEN, _PLAIN = (b"{", b"["), (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_FILES = (*_LINES, FOLDER)
_CONLL = (".conll", ".bio", ".iob")
FORMATS = (
    # Formats of annotation tools are JSON too, and so they are asked first.
    Format("label-studio", _JSON, "label_studio:LABEL_STUDIO", "Label Studio tasks", "spans", _JSON, True, head=_OPEN),
    Format("prodigy", (), "prodigy:PRODIGY", "Prodigy annotations", "spans", _LINES, text=True, head=_OPEN),
    Format("argilla", (), "argilla:ARGILLA", "Argilla records", "spans", _JSON + _LINES, text=True, head=_OPEN),
    Format("doccano", (), "doccano:DOCCANO", "doccano texts, one file per worker", "spans", _FILES, True, head=_OPEN),
    Format("brat", (".ann",), "brat:BRAT", "brat annotations, one folder per worker", "spans", (FOLDER,)),
    Format("conll", _CONLL, "conll:CONLL", "CoNLL columns of tags", "spans", _CONLL, text=True, never=_PLAIN),
    # Evaluation logs.
    Format("inspect", (".eval",), "inspect_ai:INSPECT", "Inspect AI logs", "answers", head=(b"PK", b"{")),
    Format("zooniverse", (), "zooniverse:ZOONIVERSE", "Zooniverse classifications", "answers", text=True),
    Format("potato", (), "potato:POTATO", "Potato annotations", "answers", text=True, head=_OPEN),
    Format("promptfoo", (), "promptfoo:PROMPTFOO", "promptfoo results", "answers", text=True, head=_OPEN),
    Format("deepeval", (), "deepeval:DEEPEVAL", "DeepEval test runs", "answers", text=True, head=_OPEN),
    Format("lm-eval", (), "lm_eval:LM_EVAL", "lm-evaluation-harness samples", "answers", text=True, head=_OPEN),
    Format("langfuse", (), "langfuse:LANGFUSE", "Langfuse scores", "answers", text=True),
    Format("mlflow", (), "mlflow:MLFLOW", "MLflow traces with assessments", "answers", text=True, head=_OPEN),
    Format("mt-bench", (), "battles:MT_BENCH", "MT-Bench judgments", "answers", text=True, head=_OPEN),
    Format("alpaca-eval", (), "battles:ALPACA_EVAL", "AlpacaEval annotations", "answers", text=True, head=_OPEN),
    Format("arena", (), "battles:ARENA", "battles of an arena", "answers", text=True, head=_OPEN),
    Format("judgebench", (), "judgebench:JUDGEBENCH", "JudgeBench outputs", "answers", text=True, head=_OPEN),
    Format("csv", (".csv",), "tables:CSV", "comma-separated table", text=True),
    Format("tsv", (".tsv",), "tables:TSV", "tab-separated table", text=True),
    Format("jsonl", _LINES, "json_lines:JSON_LINES", "table as JSON lines", text=True, head=_OPEN),
    Format("parquet", (".parquet",), "tables:PARQUET", "Parquet table", head=(b"PAR1\x15",)),
    Format("arrow", (".arrow", ".feather"), "tables:ARROW", "Arrow table", head=(b"ARROW1\0\0", b"\xff\xff\xff\xff")),
    Format("masks", (), "masks:MASKS", "masks of images, one folder per reader", "masks", (FOLDER,)),
)
# fmt: on


def readable_formats() -> list[Format]:
    """Return the formats that can be read as tables."""
    return [each for each in FORMATS if each.kind != "masks"]


def writable_formats() -> list[Format]:
    """Return the formats in which tables can be written.

    >>> names = [each.name for each in writable_formats()]
    >>> "csv" in names, "conll" in names
    (True, False)
    """
    return [each for each in FORMATS if each.kind == "table" and not each.read_only]


def span_formats() -> list[Format]:
    """Return the formats of texts with spans."""
    return [each for each in FORMATS if each.kind == "spans"]


def find_by_name(name: object) -> Format | None:
    """Return the format of a name, None if there is none."""
    return next((each for each in FORMATS if each.name == name), None)


def list_suffixes(formats: Iterable[Format]) -> list[str]:
    """Return all suffixes of some formats, those of compressed files last."""
    chosen = list(formats)
    plain = [suffix for each in chosen for suffix in each.suffixes]
    return plain + [f"{suffix}.gz" for each in chosen if each.text for suffix in each.suffixes]


def usual_suffixes(formats: Iterable[Format]) -> str:
    """Return the usual suffix of each format, for a help text.

    >>> usual_suffixes(each for each in FORMATS if each.name in ("csv", "jsonl"))
    '.csv .jsonl'
    """
    return " ".join(each.suffixes[0] for each in formats if each.suffixes)
