"""Python source under construction: lines, indentation, and the names it refers to."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

from kavka_broker.protocol.compiler.layout import Place
from kavka_broker.protocol.message import Struct, frozen
from kavka_broker.protocol.uuids import ZERO
from kavka_broker.protocol.wire import Methods

Run = list[tuple[str, str]]
"""Neighbours of fixed size that are read or written by one `struct` call: format and expression."""

_shared_defaults: dict[type[Struct], Struct] = {}


class Source:
    """A function's source and its globals. `run` collects neighbours of fixed size until `flush`."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.lines: list[str] = []
        self.run: Run = []
        self._depth = 0
        self._count = 0

    def flush(self) -> None:
        """Write the code for the neighbours of fixed size collected so far."""
        raise NotImplementedError

    def line(self, text: str) -> None:
        """Write a line at the present depth. The code for values collected before comes first."""
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """An indented block that begins and ends with nothing collected."""
        self.flush()
        self.line(head)
        self._depth += 1
        yield
        self.flush()
        self._depth -= 1

    def fresh(self, hint: str) -> str:
        """A local name that is not in use."""
        self._count += 1
        return f"{hint}{self._count}"

    def bind(self, name: str, value: object) -> str:
        """A global of the function under construction."""
        assert self.names.setdefault(name, value) is value, f"{name} is bound twice"
        return name

    def packer(self, method: str, formats: str) -> str:
        """The name of a `struct.Struct` method for these formats."""
        name = f"{method}_{formats.replace('?', 'o')}"
        if name not in self.names:
            self.names[name] = getattr(struct.Struct(">" + formats), method)
        return name

    def methods(self, method: str, value_format: str) -> str:
        """The name of the table of such methods for arrays, by length."""
        name = f"{method}_many_{value_format.replace('?', 'o')}"
        if name not in self.names:
            self.names[name] = Methods(method, value_format)
        return name

    def default(self, place: Place, kind: type[Struct] | None) -> str:
        """An expression for a field's default; `kind` is that of a struct."""
        if place.default is None:
            return "None"
        if place.is_array:
            return "[]"
        if kind is not None:
            return self.bind(f"DEFAULT_{kind.__name__}", shared_default(kind))
        if place.type == "uuid":
            return self.bind("ZERO", ZERO)
        return repr(place.default)

    def function(self, name: str) -> Callable[..., Any]:
        """Compile the source, and return the function of that name."""
        code = compile("\n".join(self.lines), f"<{name}>", "exec")
        exec(code, self.names)  # noqa: S102 - the source is made of the schemas only
        function = self.names[name.partition(" ")[0]]
        assert isinstance(function, FunctionType)
        return function


def shared_default(kind: type[Struct]) -> Struct:
    """The instance that the generated module uses as a default, so that `is` finds it."""
    if kind not in _shared_defaults:
        for value in vars(__import__("sys").modules[kind.__module__]).values():
            if isinstance(value, kind):
                _shared_defaults[kind] = value
                break
        else:
            _shared_defaults[kind] = frozen(kind)
    return _shared_defaults[kind]
