"""`kavka get --watch`: resources again whenever they have changed, until Ctrl-C."""

import time
from collections.abc import Callable, Iterator
from typing import Any

WATCH_SECONDS = 0.5

Document = dict[str, Any]


def changes(look: Callable[[], list[Document]]) -> Iterator[list[Document]]:
    """All documents first, then after each look those that are new or have changed."""
    shown: dict[tuple[str, str, str], Document] = {}
    while True:
        seen = {_key(document): document for document in look()}
        fresh = [
            document for key, document in seen.items() if key not in shown or _lasting(shown[key]) != _lasting(document)
        ]
        if fresh:
            yield fresh
        shown = seen
        time.sleep(WATCH_SECONDS)


def _key(document: Document) -> tuple[str, str, str]:
    metadata = document["metadata"]
    return document["kind"], metadata["namespace"], metadata["name"]


def _lasting(document: Document) -> Document:
    """The document without the times of its conditions: those of a stopped cluster are the time of the look."""
    status = document.get("status", {})
    conditions = [{**condition, "lastTransitionTime": None} for condition in status.get("conditions", ())]
    return {**document, "status": {**status, "conditions": conditions}}
