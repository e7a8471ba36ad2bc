"""Makes unified diffs of what an apply or a deletion changes in stored resources."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from kavka_operator.api import API_VERSION
from kavka_operator.api.kinds import Key
from kavka_operator.platform.local.store import Edit

GIVEN_BY_THE_STORE: Final = ("uid", "creationTimestamp", "generation")


def unified(edit: Edit) -> Iterator[str]:
    """Give the lines of a unified diff between what is stored and what is to be, behind a line that names both."""
    return _unified(edit.key, edit.before, edit.after)


def unified_deletion(key: Key, document: Mapping[str, Any]) -> Iterator[str]:
    """Give the lines of a unified diff between a stored resource and none, behind a line that names both."""
    return _unified(key, document, None)


def _unified(key: Key, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Iterator[str]:
    name = ".".join((API_VERSION.replace("/", "."), *key))
    yield f"diff -u -N LIVE/{name} MERGED/{name}"
    yield from difflib.unified_diff(_lines(before), _lines(after), f"LIVE/{name}", f"MERGED/{name}", lineterm="")


def as_written(document: Mapping[str, Any]) -> str:
    """Return a resource as YAML, without what the store gives it and without its status."""
    metadata = {key: value for key, value in document["metadata"].items() if key not in GIVEN_BY_THE_STORE}
    shown = {key: value for key, value in document.items() if key != "status"}
    return yaml.safe_dump({**shown, "metadata": metadata}, allow_unicode=True, width=110)


def _lines(document: Mapping[str, Any] | None) -> list[str]:
    """Lines of a resource that a person can have written, in an order that does not depend on the file."""
    return [] if document is None else as_written(document).splitlines()
