"""Work on many logs in a few threads."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any


@contextmanager
def side_by_side(threads_max: int, name: str) -> Iterator[Callable[..., Iterable[Any]]]:
    """A `map` over that many threads; with one, the caller's own does it and no other is started."""
    assert threads_max > 0, f"{name} has no thread"
    if threads_max == 1:
        yield map
        return
    with ThreadPoolExecutor(threads_max, name) as pool:
        yield pool.map
