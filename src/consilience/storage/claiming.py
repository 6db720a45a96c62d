"""Folders that belong to one run while it writes to them, and are removed later if it dies.

A folder has a random name and holds a file that its owner keeps locked. The system releases the lock when the owner
ends, however that happens. So a folder whose lock can be taken has no owner any more. Some file systems know locks on
one machine only. Therefore the name of a folder says on which machine it was made, and only that machine removes it.

Systems without such locks, such as Windows, keep what a run that died has left.
"""

from __future__ import annotations

import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"


@contextmanager
def claim_beside(folder: Path, purpose: str) -> Iterator[Path]:
    """Make a folder beside another that nobody else writes to. At the end it is removed, if it is still there.

    Folders for the same purpose whose owners are no more are removed first.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(folder.parent, purpose)
    token = secrets.token_hex(8)
    new = folder.with_name(f".{token}")
    work = folder.with_name(f".{folder.name}.{socket.gethostname()}.{token}.{purpose}")
    new.mkdir()
    held = None
    try:
        if fcntl is not None:
            held = open(new / LOCK, "wb")  # noqa: SIM115 (it is held to the end)
            take_lock(held)
        # Others look for owners of folders with this name, so the lock comes first.
        new.rename(work)
        yield work
    finally:
        for path in (new, work):
            shutil.rmtree(path, ignore_errors=True)
        if held is not None:
            held.close()


def remove_abandoned(parent: Path, purpose: str) -> None:
    """Remove folders for some purpose that were made on this machine and whose owners are no more."""
    for path in parent.glob(f".*.{socket.gethostname()}.*.{purpose}"):
        with suppress(OSError), open(path / LOCK, "rb") as lock:
            if take_lock(lock):
                shutil.rmtree(path, ignore_errors=True)


def take_lock(file: IO[bytes]) -> bool:
    """Lock a file unless somebody else holds it; return whether it was locked."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody holds it, or the file system has no locks
        return False
    return True
