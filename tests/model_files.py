"""Saved models taken apart and put together, for tests that damage them."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the members of a zip file."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return {name: file.read(name) for name in file.namelist()}


def pack(members: dict[str, bytes]) -> bytes:
    """Return a zip file."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return data.getvalue()


def to_bytes(array: NDArray[np.generic]) -> bytes:
    """Return an array as `numpy.save` writes it."""
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


def write_column(table: pa.Table) -> bytes:
    """Return a table as an Arrow file."""
    data = io.BytesIO()
    with pa.ipc.new_file(data, table.schema) as writer:
        writer.write_table(table)
    return data.getvalue()
