"""Assembles the page of a console as one file: style, script, and the policy that lets in nothing else.

`kavka console` and the operator serve the same page. The attributes of its body say what a console has of it.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

TAGGED: Final = r"<{0}>(.*?)</{0}>"
HEADERS: Final = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
"""Of every answer of a console."""
PARTS: Final = ("page.css", "page.js")


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


@dataclass(frozen=True, slots=True)
class Offered:
    """The names of what a console has: its views of a cluster; of these the ones that are asked for by themselves and
    are not live; those whose items have more than tables, as records. `login` is how a visitor is let in, if at all:
    by a token of the API server, for all places or for the `guarded` ones alone.
    """

    views: Sequence[str]
    asked: Sequence[str] = ()
    panels: Sequence[str] = ()
    login: str = ""
    guarded: Sequence[str] = ()


def assemble(offered: Offered) -> WebPage:
    """Return the page of a console."""
    own = files(__package__)
    html = own.joinpath("page.html").read_text(encoding="utf-8")
    attributes = {
        "views": offered.views, "asked": offered.asked, "panels": offered.panels, "login": (offered.login,),
        "guarded": offered.guarded,
    }  # fmt: skip
    put_in = {name: " ".join(names) for name, names in attributes.items()}
    put_in |= {name: own.joinpath(name).read_text(encoding="utf-8") for name in PARTS}
    for name, text in put_in.items():
        html = html.replace(f"/* {name} */", text, 1)
    return WebPage(html, _policy(html))


def _policy(page: str) -> str:
    script, style = (
        " ".join(f"'sha256-{_hash(text)}'" for text in re.findall(TAGGED.format(tag), page, re.DOTALL))
        for tag in ("script", "style")
    )
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
