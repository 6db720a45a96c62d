"""Files that are not on this machine's disks: any address that fsspec knows, such as s3://bucket/answers/*.parquet."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from ..errors import InputError, MissingDependencyError, first_line

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# Each service has its own words for times and hashes of files. The hash that fsspec offers (ukey) will not do: for some
# services it is one of the address alone.
_MARK = re.compile(r"etag|md5|digest|crc32|^sha|mtime|modif|updated|created|generation|version", re.IGNORECASE)
_LARGE = 1 << 30


def is_remote(path: str) -> bool:
    """Tell an address from a path.

    >>> is_remote("s3://bucket/answers.parquet"), is_remote("answers.parquet"), is_remote("c:/answers.csv")
    (True, False, False)
    """
    return _ADDRESS.match(path) is not None


def open_remote(path: str) -> Any:
    """Return a remote file as Arrow reads it."""
    system, inner = _find_system(path)
    return pa.PythonFile(system.open(inner, "rb"), mode="r")


def list_remote(path: str) -> list[str]:
    """Return the addresses of the file, of the files in a folder, or of those that match a pattern."""
    system, inner = _find_system(path)
    try:
        if any(sign in inner for sign in "*?["):
            found = system.glob(inner)
        else:
            found = [inner] if system.isfile(inner) else system.ls(inner, detail=False)
    except OSError as error:
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check the address.") from error
    return sorted(system.unstrip_protocol(each) for each in found)


def describe_remote(path: str) -> tuple[int, str | None]:
    """Return the size of a file in bytes, and what changes when its content does; None where nothing is known to.

    A file of unknown size is taken for a large one.
    """
    system, inner = _find_system(path)
    system.invalidate_cache(inner)  # what was listed before may have changed
    details = system.info(inner)
    marks = [(name, str(details[name])) for name in sorted(details) if _MARK.search(name) and details[name] is not None]
    size = details.get("size")
    return _LARGE if size is None else int(size), str(marks) if marks else None


def _find_system(path: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise MissingDependencyError(f"To read {path!r}, fsspec is needed: pip install 'consilience[big]'.") from error
    try:
        found: tuple[Any, str] = fsspec.core.url_to_fs(path)
        return found
    except (ValueError, ImportError) as error:  # no such protocol, or its package is missing
        raise InputError(f"{path!r} cannot be read: {first_line(error)}.", "Check the address.") from error
