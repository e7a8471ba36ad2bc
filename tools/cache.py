"""Where downloads and builds of the workshop live: outside the tree, by version, so that a clean clone finds them."""

import os
from pathlib import Path


def cache_home() -> Path:
    """The user's cache directory, by the XDG rule."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def cache(*parts: str) -> Path:
    """A directory of this project in the cache, made where it is missing."""
    directory = cache_home().joinpath("kavka", *parts)
    directory.mkdir(parents=True, exist_ok=True)
    return directory
