"""How a container of a pod ended, by the pod's status. Pure."""

from collections.abc import Mapping
from typing import Any

from kavka_operator.api.stored_resources import part


def last_words(container: Mapping[str, Any]) -> str:
    """The last words of a container before it died, and how it died; empty where it has not."""
    for name in ("state", "lastState"):
        ended = part(part(container, name), "terminated")
        if ended and ended.get("exitCode") != 0:
            lines = [line.strip() for line in str(ended.get("message") or "").splitlines() if line.strip()]
            said = lines[-1] if lines else str(ended.get("reason") or "no word")
            return f"ended with code {ended.get('exitCode')}: {said}"
    return ""
