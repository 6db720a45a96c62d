"""One thread for matrix products: with several, the last bits of sums depend on how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep matrix products, and what else uses a pool of threads, to one thread."""
    from threadpoolctl import threadpool_limits  # here, since few need it

    with threadpool_limits(limits=1):
        yield
