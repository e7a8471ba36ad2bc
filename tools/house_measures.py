"""The measures of the house, room by room: a table that `make check` prints at its end.

    python -m tools.house_measures

Lengths are median / 90 of 100 / longest. Generated files do not count, nor functions without a body, as a protocol's. A
public function says what it raises where its docstring has "Raises", or begins with "Raise"; counted are those with a
`raise` of their own that names an error, which they do not catch themselves. A failed assertion is no error: it ends
the process.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).parent.parent
BROKER: Final = "broker/kavka_broker/"
GENERATED: Final = (f"{BROKER}protocol/messages/",)
#: Each room with where its files are; `shells` is what is left of the broker.
ROOMS: Final = {
    "core": (f"{BROKER}core/",),
    "protocol": (f"{BROKER}protocol/",),
    "storage": (f"{BROKER}storage/",),
    "api": tuple(f"{BROKER}{room}/" for room in ("api", "dispatch", "request")),
    "shells": (BROKER,),
    "operator": ("operator/kavka_operator/",),
    "cli": ("cli/",),
    "tests": ("tests/",),
}
HEAD: Final = (
    "room", "files", "lines", "function lines", "file lines", "asserts/function", "typed returns", "public: docstring",
    "public: Raises",
)  # fmt: skip

#: What no caller handles.
NO_ERRORS: Final = frozenset({"AssertionError", "InvariantViolation", "NotImplementedError"})
SAYS: Final = re.compile(r"\bRaises?\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Measures:
    """The counts of one room."""

    files: list[int] = field(default_factory=list)  # the lines of each
    functions: list[int] = field(default_factory=list)  # likewise
    asserts: int = 0
    typed: int = 0
    public: int = 0
    documented: int = 0
    raising: int = 0
    saying: int = 0

    def add(self, source: str) -> None:
        """Count a file."""
        tree = ast.parse(source)
        self.files.append(len(source.splitlines()))
        self.asserts += sum(isinstance(node, ast.Assert) for node in ast.walk(tree))
        for node in ast.walk(tree):
            if isinstance(node, Function) and has_body(node):
                self._add_function(node)

    def _add_function(self, node: Function) -> None:
        assert node.end_lineno is not None
        self.functions.append(node.end_lineno - node.lineno + 1)
        self.typed += node.returns is not None
        if node.name.startswith("_"):
            return
        docstring, raises = ast.get_docstring(node) or "", any(raised(node))
        self.public += 1
        self.documented += bool(docstring)
        self.raising += raises
        self.saying += raises and SAYS.search(docstring) is not None

    def row(self, name: str) -> tuple[str, ...]:
        """A line of the table."""
        return (
            name,
            f"{len(self.files)}",
            f"{sum(self.files):,}",
            spread(self.functions),
            spread(self.files),
            f"{self.asserts / max(1, len(self.functions)):.2f}",
            share(self.typed, len(self.functions)),
            share(self.documented, self.public),
            f"{self.saying} of {self.raising}",
        )


def has_body(function: Function) -> bool:
    """Whether there is more than a docstring and an ellipsis, as in a protocol."""
    return any(
        not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        for statement in function.body
    )


def raised(function: Function) -> Iterator[str]:
    """Errors that leave a function, which raises them by name; without those of inner functions."""
    return _leaving(function.body, NO_ERRORS)


def _leaving(nodes: Iterable[ast.AST], caught: frozenset[str]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Raise(ast.Call(ast.Name(name)) | ast.Name(name)) if name[0].isupper() and name not in caught:
                yield name
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
                pass
            case ast.Try(body, handlers, orelse, finalbody):
                names = {part.id for handler in handlers for part in _names(handler.type)}
                yield from _leaving(body, caught | names)
                yield from _leaving([*handlers, *orelse, *finalbody], caught)
            case _:
                yield from _leaving(ast.iter_child_nodes(node), caught)


def _names(kind: ast.expr | None) -> Iterator[ast.Name]:
    """The errors that a handler names."""
    return (part for part in ast.walk(kind) if isinstance(part, ast.Name)) if kind is not None else iter(())


def silent(tree: ast.AST) -> Iterator[str]:
    """Public functions that raise and do not say so."""
    for node in ast.walk(tree):
        if (
            isinstance(node, Function)
            and not node.name.startswith("_")
            and not SAYS.search(ast.get_docstring(node) or "")
        ):
            yield from [node.name] if any(raised(node)) else []


def spread(lengths: Sequence[int]) -> str:
    """Median, 90th of 100, longest."""
    ordered = sorted(lengths)
    return f"{median(ordered):.0f} / {ordered[len(ordered) * 9 // 10]} / {ordered[-1]}" if ordered else "-"


def share(part: int, whole: int) -> str:
    """A share in per cent, rounded down: 100 % is all of them."""
    return f"{100 * part // whole} %" if whole else "-"


def room_of(path: str) -> str | None:
    """The room of a file, or None where it does not count."""
    if path.startswith(GENERATED):
        return None
    return next((room for room, places in ROOMS.items() if path.startswith(places)), None)


def measured(root: Path = ROOT) -> dict[str, Measures]:
    """The measures of each room."""
    rooms = {room: Measures() for room in ROOMS}
    for top in ("broker", "operator", "cli", "tests"):
        for path in sorted((root / top).rglob("*.py")):
            room = room_of(path.relative_to(root).as_posix())
            if room is not None:
                rooms[room].add(path.read_text(encoding="utf-8"))
    return rooms


def table(rooms: dict[str, Measures]) -> Iterator[str]:
    """Lines of the table."""
    rows = [HEAD, *(measures.row(room) for room, measures in rooms.items())]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    for first, *rest in rows:
        yield "  ".join([first.ljust(widths[0]), *right(rest, widths[1:])])
    source = sum(sum(measures.files) for room, measures in rooms.items() if room != "tests")
    yield f"tests : source = {sum(rooms['tests'].files) / max(1, source):.2f}"


def right(cells: Iterable[str], widths: Iterable[int]) -> Iterator[str]:
    """Cells in one line, each as wide as its column."""
    return (cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


if __name__ == "__main__":
    print(*table(measured()), sep="\n")
