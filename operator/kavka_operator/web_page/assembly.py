"""Assembles a page as one file: its own parts, the shared style and script, and the policy that lets in nothing else.

In the HTML of a page `/* shared.css */` stands for the shared style, and the names of its own parts for those.
"""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

PART: Final = r"<{0}>(.*?)</{0}>"
HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
"""Of every answer of a console."""
SHARED: Final = ("shared.css", "shared.js")


@dataclass(frozen=True, slots=True)
class WebPage:
    """A page as it is sent, with its Content-Security-Policy: its own script and style, known by their hashes, and
    what it asks of its own port.
    """

    text: str
    policy: str

    @property
    def headers(self) -> dict[str, str]:
        """The headers that it is sent with."""
        return {**HEADERS, "Content-Security-Policy": self.policy}


def assemble(html: str, parts: Mapping[str, str] | None = None) -> WebPage:
    """Return the page of this HTML, with the parts put in by their names."""
    for name, text in {**_shared(), **(parts or {})}.items():
        html = html.replace(f"/* {name} */", text)
    return WebPage(html, _policy(html))


@cache
def _shared() -> dict[str, str]:
    return {name: files(__package__).joinpath(name).read_text(encoding="utf-8") for name in SHARED}


def _policy(page: str) -> str:
    script, style = (
        " ".join(f"'sha256-{_hash(text)}'" for text in re.findall(PART.format(tag), page, re.DOTALL))
        for tag in ("script", "style")
    )
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
