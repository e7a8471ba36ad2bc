"""The colours of the screen, for a dark terminal."""

from rich.color import Color
from rich.style import Style

from kavka_operator.web_page.sheet import Tone

BACKGROUND = "#0e1116"
BAND = "#161b22"
CHOSEN = "#1f3a5f"

_COLOURS = {
    Tone.PLAIN: "#c9d1d9",
    Tone.FAINT: "#6e7681",
    Tone.NAME: "#79c0ff",
    Tone.GOOD: "#7ee787",
    Tone.NEAR: "#e3b341",
    Tone.BAD: "#ff7b72",
    Tone.TITLE: "#8b949e",
    Tone.KEY: "#d2a8ff",
    Tone.TREND: "#3f6ea8",
}
_BOLD = {Tone.TITLE, Tone.KEY, Tone.BAD}


def style_of(tone: Tone, background: str = BACKGROUND) -> Style:
    """The style of a text."""
    return Style(color=Color.parse(_COLOURS[tone]), bgcolor=Color.parse(background), bold=tone in _BOLD)
