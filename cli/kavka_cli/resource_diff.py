"""Makes unified diffs of what an apply changes in stored resources."""

import difflib
from collections.abc import Iterator
from typing import Any, Final

import yaml

from kavka_operator.api import API_VERSION
from kavka_operator.platform.local.store import Edit

GIVEN_BY_THE_STORE: Final = ("uid", "creationTimestamp", "generation")


def unified(edit: Edit) -> Iterator[str]:
    """Give the lines of a unified diff between what is stored and what is to be, behind a line that names both."""
    name = ".".join((API_VERSION.replace("/", "."), *edit.key))
    yield f"diff -u -N LIVE/{name} MERGED/{name}"
    before, after = _lines(edit.before), _lines(edit.after)
    yield from difflib.unified_diff(before, after, f"LIVE/{name}", f"MERGED/{name}", lineterm="")


def as_written(document: dict[str, Any]) -> str:
    """Return a resource as YAML, without what the store gives it and without its status."""
    metadata = {key: value for key, value in document["metadata"].items() if key not in GIVEN_BY_THE_STORE}
    shown = {key: value for key, value in document.items() if key != "status"}
    return yaml.safe_dump({**shown, "metadata": metadata}, allow_unicode=True, width=110)


def _lines(document: dict[str, Any] | None) -> list[str]:
    """Lines of a resource that a person can have written, in an order that does not depend on the file."""
    return [] if document is None else as_written(document).splitlines()
