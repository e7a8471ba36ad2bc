"""Bytes of records as JSON has them."""

import base64
from typing import Any


def as_text(data: bytes | None) -> Any:
    """Bytes as JSON has them: a text, or an object with `base64`."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
