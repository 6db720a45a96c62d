"""Where compiled kernels are kept between runs.

numba keeps machine code beside the source, in the user's home, or in the folder named by $NUMBA_CACHE_DIR. Where it can
write to none of them it refuses to compile, a full disk is an error, and so is a damaged file, again in every run.
Kernels do not fail for such reasons: they are kept in a temporary folder instead, or compiled in every run, and what is
damaged is replaced.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import logging
import multiprocessing
import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from hashlib import sha256
from typing import Any

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _Cache,
    _CacheLocator,
    _SourceFileBackedLocatorMixin,
)
from numba.core.runtime.nrt import rtsys

# Versions of numba whose machine code is loaded without all that compiling needs.
LOADS_BY_ITSELF = ("0.68.",)


class CheckedFile(IndexDataCacheFile):
    """Files that notice when they are damaged: machine code with a wrong bit would crash, or compute something else.

    A digest is appended to all that numba writes, which does not disturb numba when it reads. An entry begins with its
    key, for the index that leads to it may be damaged too.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write an entry."""
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        """Return an entry, or None if there is none."""
        found = super().load(key)
        if found is None:
            return None
        kept_key, data = found
        if kept_key != key:
            raise ValueError("The entry is another one.")
        return data

    def _dump(self, obj: Any) -> bytes:
        content: bytes = super()._dump(obj)
        return content + sha256(content).digest()

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            content = file.read()
        if sha256(content[:-32]).digest() != content[-32:]:
            raise ValueError("The digest is not that of the content.")
        return super()._load_data(name)


class UsualPlace(FunctionCache):
    """The first of numba's places that can be written to."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = CheckedFile(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return what is kept for a signature, or None.

        numba first gets its context ready to compile, which takes .3 s at the start of every process. Machine code
        needs the runtime that counts references, and no more; what is compiled later gets the context ready by itself.
        That was tried for the versions named here. Others take numba's own way.
        """
        if not numba.__version__.startswith(LOADS_BY_ITSELF):
            return super().load_overload(signature, context)
        rtsys.initialize(context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(signature, context)


class TemporaryLocator(_SourceFileBackedLocatorMixin, _CacheLocator):
    """Finds the folder for temporary files.

    Its base classes are those of numba's own locators, which have not the same names in all versions.
    """

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno
        self._cache_path = os.path.join(make_temporary_folder(), self.get_suitable_cache_subpath(file))

    def get_cache_path(self) -> str:
        """Return the folder for one source file."""
        return self._cache_path


class TemporaryPlace(UsualPlace):
    """A folder for temporary files, which may be gone after the next start of the machine."""

    class _impl_class(CompileResultCacheImpl):
        _locator_classes = [TemporaryLocator]  # noqa: RUF012


class KernelCache(_Cache):
    """Keeps the machine code of one kernel: in the usual place, else in the temporary one, else nowhere."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    # Both are opened when the kernel is first called, not at import: numba tries each folder by writing to it.

    @cached_property
    def _usual(self) -> UsualPlace | None:
        return _open_place(UsualPlace, self._function)

    @cached_property
    def _temporary(self) -> UsualPlace | None:
        return _open_place(TemporaryPlace, self._function)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return what was kept for a signature, or None."""
        found = _load(self._usual, signature, context)
        folder = name_temporary_folder()
        if found is None and folder is not None and (self._usual is None or os.path.isdir(folder)):
            found = _load(self._temporary, signature, context)
            if found is not None:
                _say_where(folder)
        return found

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep what was compiled, in the first place that takes it."""
        if not _save(self._usual, signature, data):
            _say_where(name_temporary_folder() if _save(self._temporary, signature, data) else None)

    @property
    def cache_path(self) -> str | None:
        """The folder of the usual place."""
        return None if self._usual is None else self._usual.cache_path

    def flush(self) -> None:
        """Forget what was kept in the usual place."""
        if self._usual is not None:
            self._usual.flush()

    def enable(self) -> None:
        """Do nothing: it is always enabled."""

    def disable(self) -> None:
        """Do nothing: it is always enabled."""


def _open_place(kind: type[UsualPlace], function: Callable[..., Any]) -> UsualPlace | None:
    try:
        return kind(function)
    except (RuntimeError, OSError):  # numba has found no folder that can be written to
        return None


def _load(place: UsualPlace | None, signature: Any, context: Any) -> Any:
    """Return what is kept in a place. What cannot be read is forgotten, and will be replaced."""
    if place is None:
        return None
    try:
        return place.load_overload(signature, context)
    except Exception:  # damaged bytes may lead to any
        with suppress(OSError):
            place.flush()
        return None


def _save(place: UsualPlace | None, signature: Any, data: Any) -> bool:
    """Keep something in a place; return whether that worked."""
    if place is None:
        return False
    try:
        place.save_overload(signature, data)
    except Exception:  # no space is left, or a file is damaged and cannot be replaced
        return False
    return True


def name_temporary_folder() -> str | None:
    """Return the path of the folder for this user's temporary files of this package; None if there can be none."""
    user = f"-{os.getuid()}" if hasattr(os, "getuid") else ""  # elsewhere each user has a folder of their own
    try:
        return os.path.join(tempfile.gettempdir(), f"consilience{user}")
    except OSError:  # no folder for temporary files can be written to
        return None


def make_temporary_folder() -> str:
    """Return the path of that folder, which exists and belongs to this user alone: what is in it will be executed."""
    path = name_temporary_folder()
    if path is None:
        raise FileNotFoundError("There is no folder for temporary files.")
    os.makedirs(path, mode=0o700, exist_ok=True)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode) or (
        hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
    ):
        raise PermissionError(f"{path} is not a folder of this user alone.")
    return path


@cache
def _say_where(folder: str | None) -> None:
    """Log, once, where compiled code is kept instead of the usual place."""
    # Worker processes would only repeat what the main process has said.
    level = logging.WARNING if multiprocessing.parent_process() is None else logging.DEBUG
    what = f"It is kept in {folder} for now" if folder else "It is compiled again in every run, which takes a while"
    logging.getLogger("consilience").log(
        level,
        f"Compiled code cannot be kept where it should be. {what}. Set NUMBA_CACHE_DIR to a folder with space that can "
        "be written to.",
    )
