"""Compiles a decoder: bytes to one message in one version.

The result reads as one would write it by hand for exactly this version: neighbours of fixed size, the length that
follows them and the count of tagged fields included, come out of one `unpack_from`; structs are made without
calling `__init__` and get their attributes straight from the unpacked tuple.

Reaching past the end is noticed without a check per value. `unpack_from` and indexing raise; a slice silently
shortens, but the position moves by the length it claimed, so that the next read raises or the one check at the end
does. Only what allocates by a number from the wire, an array, is checked before.

Buffers without `records` are turned into `bytes` first, which are quicker to index and slice than a memoryview;
with `records` they stay a memoryview, so that the batches are not copied.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kavka_broker.protocol import wire
from kavka_broker.protocol.compiler.layout import FORMATS, Layout, Place, of_message
from kavka_broker.protocol.compiler.source import Source
from kavka_broker.protocol.errors import ProtocolViolation
from kavka_broker.protocol.message import Message

Decoder = Callable[..., Any]
"""Takes a buffer and a position, a bounded one also the bound; gives the message and the position after it, a bounded
one also how many elements there might have been besides.
"""

STRIDE_MIN = 4
"""From this many structs of fixed size on, an array is read by one `iter_unpack`."""


def compile_decoder(kind: type[Message], version: int, *, bounded: bool = False) -> Decoder:
    """Compile the decoder of this version; a bounded one takes no more elements of arrays than its last argument."""
    source = DecoderSource(of_message(kind, version), bounded=bounded)
    return source.function(f"decode version {version} of {kind.NAME}")


class DecoderSource(Source):
    """Source of a decoder, which reads from `buffer` at `p`, up to `end`."""

    def __init__(self, layout: Layout, *, bounded: bool) -> None:
        super().__init__(
            {
                "new": object.__new__,
                "read_uvarint": wire.read_uvarint,
                "read_string_length": wire.read_string_length,
                "skip_tags": wire.skip_tags,
                "refuse_null": wire.refuse_null,
                "refuse_length": wire.refuse_length,
                "refuse_count": wire.refuse_count,
                "refuse_tag": wire.refuse_tag,
                "refuse_end": wire.refuse_end,
                "ProtocolViolation": ProtocolViolation,
                "broken": (struct.error, IndexError, UnicodeDecodeError),
            }
        )
        self.holds_records = holds_records(layout)
        self.bounded = bounded
        parameters = f"buffer, p=0, elements={wire.ELEMENTS_MAX}" if bounded else "buffer, p=0"
        with self.block(f"def decode({parameters}):"):
            if not self.holds_records:
                self.line("buffer = bytes(buffer)")
            self.line("end = len(buffer)")
            with self.block("try:"):
                message = self.struct(layout)
            with self.block("except broken as error:"):
                name = f"{layout.kind.__name__} version {layout.version}"
                self.line(f"raise ProtocolViolation(f'{name}: {{error}}') from None")
            with self.block("if p > end:"):
                self.line("refuse_end(end)")
            self.line(f"return {message}, p, elements" if bounded else f"return {message}, p")

    def flush(self) -> None:
        """Unpack the values collected so far, straight into their targets."""
        if not self.run:
            return
        formats = "".join(code for code, _ in self.run)
        targets = ", ".join(target for _, target in self.run)
        if formats == "B":
            self.line(f"{targets} = buffer[p]")
        elif len(self.run) == 1:
            self.line(f"{targets} = {self.packer('unpack_from', formats)}(buffer, p)[0]")
        else:
            self.line(f"{targets} = {self.packer('unpack_from', formats)}(buffer, p)")
        self.line(f"p += {struct.calcsize('>' + formats)}")
        self.run = []

    def struct(self, layout: Layout) -> str:
        """Read a struct; the name of the variable that holds it."""
        target = self.fresh("x")
        self.line(f"{target} = new({self.bind(layout.kind.__name__, layout.kind)})")
        self.set_defaults(layout, target)
        for place in layout.places:
            self.value(layout, place, f"{target}.{place.attribute}")
        if layout.flexible:
            self.tags(layout, target)
        return target

    def set_defaults(self, layout: Layout, target: str) -> None:
        """Give fields that this version or this message does not carry their defaults."""
        for place in (*layout.absent, *layout.tagged):
            kind = layout.nested(place.type).kind if place.is_struct else None
            self.line(f"{target}.{place.attribute} = {self.default(place, kind)}")

    def value(self, layout: Layout, place: Place, target: str) -> None:
        """Read one value into `target`."""
        if place.format:
            self.run.append((place.format, target))
        elif place.is_array:
            self.array(layout, place, target)
        elif place.is_struct:
            self.nested(layout, place, target)
        else:
            self.sized(place, target)

    def sized(self, place: Place, target: str) -> None:
        """Read a string, bytes or records."""
        self.length(place)
        if place.nullable:
            with self.block("if n < 0:"):
                self.line(f"{target} = None")
            with self.block("else:"):
                self.content(place, target)
        else:
            with self.block("if n < 0:"):
                self.line(f"refuse_null({place.attribute!r})")
            self.content(place, target)

    def content(self, place: Place, target: str) -> None:
        self.line("q = p + n")
        self.line(f"{target} = {self.slice(place.type)}")
        self.line("p = q")

    def slice(self, kind: str) -> str:
        """The expression for the bytes between `p` and `q`."""
        as_bytes = "buffer[p:q].tobytes()" if self.holds_records else "buffer[p:q]"
        match kind:
            case "string":
                return f"{as_bytes}.decode()"
            case "bytes":
                return as_bytes
            case _:
                return "buffer[p:q]"

    def length(self, place: Place) -> None:
        """Read a length into `n`; below zero stands for null."""
        is_string = place.type == "string"
        if not place.compact:
            self.run.append(("h" if is_string else "i", "n"))
            self.flush()
            return
        self.run.append(("B", "n"))
        self.flush()
        with self.block("if n > 127:"):
            self.line(f"n, p = {'read_string_length' if is_string else 'read_uvarint'}(buffer, p - 1)")
        self.line("n -= 1")

    def nested(self, layout: Layout, place: Place, target: str) -> None:
        """Read a struct that is a field.

        A nullable struct follows a byte that says whether it is there: -1 for null, but 0 in a tagged field.
        """
        if not place.nullable:
            self.line(f"{target} = {self.struct(layout.nested(place.type))}")
            return
        self.run.append(("b", "n"))
        with self.block("if n <= 0:" if place.tag >= 0 else "if n < 0:"):
            self.line(f"{target} = None")
        with self.block("else:"):
            variable = self.struct(layout.nested(place.type))
            self.flush()
            self.line(f"{target} = {variable}")

    def array(self, layout: Layout, place: Place, target: str) -> None:
        """Read an array. Its claimed length is checked against the bytes left before anything is made."""
        self.length(place)
        null = f"{target} = None" if place.nullable else f"refuse_null({place.attribute!r})"
        with self.block("if n < 0:"):
            self.line(null)
        with self.block("else:"):
            element = place.element
            with self.block(f"if n > (end - p) // {self.element_size_min(layout, element)}:"):
                self.line(f"refuse_length({place.attribute!r}, n, end - p)")
            if self.bounded:
                self.line("elements -= n")
                with self.block("if elements < 0:"):
                    self.line(f"refuse_count({place.attribute!r})")
            self.elements(layout, element, target)

    def element_size_min(self, layout: Layout, element: Place) -> int:
        if element.is_struct:
            return layout.nested(element.type).size_min()
        if element.format:
            return struct.calcsize(">" + element.format)
        return 1 if element.compact else 2

    def elements(self, layout: Layout, element: Place, target: str) -> None:
        """Read `n` elements into a list."""
        if element.format in {*FORMATS.values()} - {"16s"}:
            unpack = self.methods("unpack_from", str(element.format))
            self.line(f"{target} = list({unpack}[n](buffer, p))")
            self.line(f"p += n * {struct.calcsize('>' + str(element.format))}")
            return
        add = self.fresh("add")
        self.line(f"{target} = items = []")
        self.line(f"{add} = items.append")
        if element.is_struct:
            self.structs(layout.nested(element.type), add)
            return
        with self.block("for _ in range(n):"):
            self.value(layout, element, "item")
            self.flush()
            self.line(f"{add}(item)")

    def structs(self, layout: Layout, add: str) -> None:
        """Read `n` structs; many of a fixed size by stride, where none of them has tagged fields."""
        formats = layout.fixed_format()
        if formats is None:
            self.structs_one_by_one(layout, add)
            return
        size = struct.calcsize(">" + formats) + layout.flexible
        tags = f" or any(buffer[p + {size - 1}:p + n * {size}:{size}])" if layout.flexible else ""
        with self.block(f"if n < {STRIDE_MIN}{tags}:"):
            self.structs_one_by_one(layout, add)
        with self.block("else:"):
            self.structs_by_stride(layout, formats, size, add)

    def structs_one_by_one(self, layout: Layout, add: str) -> None:
        with self.block("for _ in range(n):"):
            variable = self.struct(layout)
            self.flush()
            self.line(f"{add}({variable})")

    def structs_by_stride(self, layout: Layout, formats: str, size: int, add: str) -> None:
        variable = self.fresh("x")
        unpack = self.packer("iter_unpack", formats + "x" * layout.flexible)
        targets = "".join(f"{variable}.{place.attribute}, " for place in layout.places)
        self.line(f"q = p + n * {size}")
        with self.block(f"for values in {unpack}(buffer[p:q]):"):
            self.line(f"{variable} = new({layout.kind.__name__})")
            self.set_defaults(layout, variable)
            self.line(f"{targets.strip()} = values")
            self.line(f"{add}({variable})")
        self.line("p = q")

    def tags(self, layout: Layout, target: str) -> None:
        """Read the tagged fields, known and unknown; mostly there are none."""
        self.run.append(("B", "tags"))
        if not layout.tagged:
            with self.block("if tags:"):
                self.line("p = skip_tags(buffer, p - 1)")
            return
        tag, stop = self.fresh("tag"), self.fresh("stop")
        with self.block("if tags:"):
            with self.block("if tags > 127:"):
                self.line("tags, p = read_uvarint(buffer, p - 1)")
            with self.block("for _ in range(tags):"):
                self.uvarint(tag)
                self.uvarint("n")
                self.line(f"{stop} = p + n")
                with self.block(f"if {stop} > end:"):
                    self.line("refuse_end(end)")
                self.known_tags(layout, target, tag, stop)
                with self.block(f"if p != {stop}:"):
                    self.line(f"refuse_tag({layout.kind.__name__!r}, {tag})")

    def known_tags(self, layout: Layout, target: str, tag: str, stop: str) -> None:
        """Read a tagged field that this version knows; skip another."""
        begin = "if"
        for place in layout.tagged:
            with self.block(f"{begin} {tag} == {place.tag}:"):
                self.value(layout, place, f"{target}.{place.attribute}")
            begin = "elif"
        with self.block("else:"):
            self.line(f"p = {stop}")

    def uvarint(self, target: str) -> None:
        """Read an unsigned varint, which mostly is one byte."""
        self.line(f"{target} = buffer[p]")
        self.line("p += 1")
        with self.block(f"if {target} > 127:"):
            self.line(f"{target}, p = read_uvarint(buffer, p - 1)")


def holds_records(layout: Layout) -> bool:
    """Whether a field in this struct or below it is a batch of records."""
    places = (*layout.places, *layout.tagged)
    names = [place.type.removeprefix("[]") for place in places]
    return "records" in names or any(name[0].isupper() and holds_records(layout.nested(name)) for name in names)
