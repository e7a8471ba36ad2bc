"""Draws the house and a request's way through it, from the code: docs/pictures/house.svg and way.svg.

python -m tools.pictures            rewrites both
python -m tools.pictures --check    says what has drifted

The house is what `[tool.importlinter]` holds: a band is a layer, and may import what is below it. The way is that of a
Produce request through a node in this process, a line for each file when it is entered first, indented by how many
files have called each other by then; each file says in the first sentence of its head what it is for.
"""

import ast
import asyncio
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from tests.walks import HOUSE, shortest

ROOT: Final = Path(__file__).parents[1]
PICTURES: Final = ROOT / "docs" / "pictures"
TRIP: Final = "Produce v13"
MEMBERS: Final = (("layers", "the broker", "kavka_broker"), ("operator-layers", "the operator", "kavka_operator"))
COLOURS: Final = ("#e8f1fb", "#fdf0e3")
BAND, GAP, WIDE = 44, 8, 520
NARROW: Final = 200  # no room for a sentence
ROW, INDENT, WAY_WIDE = 23, 17, 1110
NAME_LETTER, HEAD_LETTER = 7.9, 6.6  # as wide as a font of readers has them

Layers = list[list[str]]


def layers_of(contract: str) -> Layers:
    """Modules of each layer, the highest first, as the contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [found] = (rule["layers"] for rule in settings["tool"]["importlinter"]["contracts"] if rule["id"] == contract)
    return [[name for name in re.findall(r"\w+", layer) if name != "__main__"] for layer in found]


def heads_of(package: str) -> dict[str, str]:
    """Modules and packages right below `package`, each with the purpose at its head."""
    home = ROOT / package.removeprefix("kavka_") / package
    files = [*home.glob("*.py"), *home.glob("*/__init__.py")]
    return {(file.parent.name if file.stem == "__init__" else file.stem): head_of(file) for file in files}


def house() -> str:
    """The layers of broker and operator, side by side."""
    towers = [
        (title, [row for row in layers_of(contract) if row], heads_of(package)) for contract, title, package in MEMBERS
    ]
    height = 74 + max(len(layers) for _, layers, _ in towers) * (BAND + GAP)
    parts = list[str]()
    for number, (title, layers, heads) in enumerate(towers):
        left = 20 + number * (WIDE + 30)
        parts.append(text(left, 34, title, size=17, weight=600))
        for floor, names in enumerate(layers):
            parts += band(left, 50 + floor * (BAND + GAP), names, heads, COLOURS[number])
    note = "what is above may import what is below; of the broker the operator takes core.config and core.quota alone"
    parts.append(text(20, height - 8, note, size=12, fill="#555"))
    return svg(2 * WIDE + 70, height, parts)


def band(left: int, top: int, names: Sequence[str], heads: dict[str, str], colour: str) -> Iterator[str]:
    """Draw a layer: a box for each of its rooms, by their shares of the width."""
    width = (WIDE - GAP * (len(names) - 1)) / len(names)
    for place, name in enumerate(names):
        x = left + place * (width + GAP)
        yield f'<rect x="{x:.0f}" y="{top}" width="{width:.0f}" height="{BAND}" rx="5" fill="{colour}" stroke="#8aa"/>'
        yield text(x + 10, top + 19, name, size=14, weight=600)
        if width > NARROW:
            yield text(x + 10, top + 35, cut(heads.get(name, ""), int(width / 6)), size=11, fill="#666")


def way(entered: Sequence[tuple[int, str]]) -> str:
    """Files of a walk, each with the depth at which it was entered first."""
    parts = [text(20, 34, "the way of a Produce request, from the socket to the file and back", size=17, weight=600)]
    for row, (depth, file) in enumerate(entered):
        x, y = 24 + depth * INDENT, 62 + row * ROW
        parts.append(f'<circle cx="{x - 6}" cy="{y - 4}" r="3" fill="#4a7fb5"/>')
        name = escape(file)
        room = (WAY_WIDE - 32 - x - len(file) * NAME_LETTER) / HEAD_LETTER
        head = escape(cut(head_of(Path(HOUSE) / file), int(room)))
        parts.append(
            f'<text x="{x + 4}" y="{y}" font-size="13"><tspan font-weight="600">{name}</tspan>'
            f'<tspan fill="#555" dx="8">{head}</tspan></text>'
        )
    return svg(WAY_WIDE, 80 + len(entered) * ROW, parts)


def head_of(file: Path) -> str:
    """The first sentence of a module's head."""
    head = " ".join((ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split())
    return re.split(r"(?<=[a-z`)])\. ", head + " ", maxsplit=1)[0].rstrip(" .").replace("`", "")


def cut(words: str, length_max: int) -> str:
    """Words that fit into the length."""
    return words if len(words) <= length_max else words[: length_max - 3].rsplit(" ", 1)[0] + " ..."


def text(x: float, y: float, words: str, *, size: int, weight: int = 400, fill: str = "#222") -> str:
    """A line of words."""
    return f'<text x="{x:.0f}" y="{y}" font-size="{size}" font-weight="{weight}" fill="{fill}">{escape(words)}</text>'


def svg(width: int, height: int, parts: Sequence[str]) -> str:
    """The picture, on white, in the reader's own font."""
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif">'
    )
    return "\n".join([start, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>", ""])


async def produce() -> list[tuple[int, str]]:
    """The files that a Produce request enters, in order."""
    async for name, walk in shortest():
        if name == TRIP:
            return walk.entered
    raise AssertionError(f"{TRIP} is no trip")


def drifted() -> list[str]:
    """Parts of the pictures that are out of date. The way may differ in its turns, not in the files it names."""
    found = []
    if (PICTURES / "house.svg").read_text(encoding="utf-8") != house():
        found.append("docs/pictures/house.svg")
    named = re.findall(r'font-weight="600">([\w/]+\.py)<', (PICTURES / "way.svg").read_text(encoding="utf-8"))
    found += [f"docs/pictures/way.svg: {file}" for file in named if not (Path(HOUSE) / file).is_file()]
    return found


def main() -> int:
    """Draw, or print what has drifted and return exit status 1."""
    if "--check" in sys.argv[1:]:
        for line in drifted():
            print(f"{line}: run `make generate`")
        return bool(drifted())
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "house.svg").write_text(house(), encoding="utf-8")
    (PICTURES / "way.svg").write_text(way(asyncio.run(produce())), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
