"""Compiles an encoder: one message in one version to bytes.

Pieces go to a list that is joined at the end, and before wherever it is long (`PIECES_MAX`), for a piece takes twenty
times the memory of its bytes: neighbours of fixed size, the length that follows them and the count of
tagged fields included, are packed by one call. A message with `records` is compiled to give several buffers: large
batches stand between the joined pieces as they are, so that nothing copies what the log already holds.

A field that the version lacks must hold its default unless Kafka calls it ignorable; a tagged field is written
where it differs from its default.

Of a message that is made part by part, the elements of one array are encoded as they are made: the encoder of the whole
takes that array as `EncodedElements`, and passes their bytes through as it does large batches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kavka_broker.protocol import wire
from kavka_broker.protocol.compiler.decoder import holds_records
from kavka_broker.protocol.compiler.layout import FORMATS, Layout, Place, of_message
from kavka_broker.protocol.compiler.source import Source
from kavka_broker.protocol.message import Buffer, Message

Encoder = Callable[[Any], bytes]
PartsEncoder = Callable[[Any], list[Buffer]]
Path = tuple[str, ...]  # attributes that are arrays of structs, the outermost first

UNCOPIED_BYTES_MIN: Final = 8192
"""Records of this size or more are passed through; copying fewer is cheaper than one more buffer to send."""
OF_OUR_WORDS: Final = ("error_message", "status_detail")
"""Ends of the names of fields for people, whose text may name what a request named at length, and is cut."""
PIECES_MAX: Final = 8192
"""Pieces that are not joined yet; they are counted behind elements of outermost arrays and behind arrays of strings."""


def compile_encoder(kind: type[Message], version: int) -> tuple[Encoder, PartsEncoder]:
    """Compile the encoders of this version, to one buffer and to several."""
    layout = of_message(kind, version)
    source = EncoderSource(layout)
    function = source.function(f"encode version {version} of {kind.NAME}")
    if source.in_parts:
        return lambda message: b"".join(function(message)), function
    return function, lambda message: [function(message)]


def compile_elements_encoder(kind: type[Message], version: int, path: Path) -> Encoder:
    """Compile the encoder of a list of elements of the array at `path`, without their count."""
    layout = of_message(kind, version)
    for name in path:
        place = next(place for place in layout.places if place.attribute == name)
        layout = layout.nested(place.element.type)
    return ElementsSource(layout).function(f"encode elements of {'.'.join(path)} in version {version} of {kind.NAME}")


def compile_joined_encoder(kind: type[Message], version: int, path: Path) -> PartsEncoder:
    """Compile the encoder of a message whose arrays at `path` are `EncodedElements`."""
    source = EncoderSource(of_message(kind, version), path)
    return source.function(f"encode version {version} of {kind.NAME} with encoded {'.'.join(path)}")


class EncoderSource(Source):
    """Source of an encoder, which adds pieces to `pieces` by the method named `add`; finished buffers go to `parts`.

    The array at `encoded` is encoded already.
    """

    def __init__(self, layout: Layout, encoded: Path = ()) -> None:
        super().__init__(
            {
                "uvarint": wire.uvarint,
                "cut_message": wire.cut_message,
                "string_length": wire.string_length,
                "size_of": wire.size_of,
                "unsupported": wire.unsupported,
                "ONE_BYTE": wire.ONE_BYTE,
                "join": b"".join,
            }
        )
        self.add = "add"
        self.arrays: Path = ()  # that the code being written is in
        self.encoded = encoded
        self.in_parts = bool(encoded) or holds_records(layout)
        with self.block("def encode(message):"):
            self.line("pieces = []")
            self.line("add = pieces.append")
            self.line("parts = []")
            self.body(layout)
            self.flush()
            self.line("parts.append(join(pieces))")
            self.line("return parts" if self.in_parts else "return join(parts)")

    def body(self, layout: Layout) -> None:
        """Write the code for the whole message."""
        self.struct(layout, "message")

    def flush(self) -> None:
        """Pack the values collected so far."""
        if self.run:
            formats = "".join(code for code, _ in self.run)
            values = ", ".join(value for _, value in self.run)
            if formats == "B":  # a count or length below 128
                self.line(f"{self.add}({self.one_byte(values)})")
            else:
                self.line(f"{self.add}({self.packer('pack', formats)}({values}))")
            self.run = []

    def one_byte(self, value: str) -> str:
        """The expression for a count that stands alone."""
        return repr(wire.ONE_BYTE[int(value)]) if value.isdigit() else f"ONE_BYTE[{value}]"

    def struct(self, layout: Layout, source: str) -> None:
        """Write a struct."""
        for place in layout.absent:
            if not place.ignorable:
                self.refuse(layout, place, f"{source}.{place.attribute}", self.differs(layout, place, source))
        for place in layout.places:
            self.value(layout, place, f"{source}.{place.attribute}")
        if layout.flexible:
            self.tags(layout, source)

    def refuse(self, layout: Layout, place: Place, value: str, condition: str) -> None:
        """Write code that raises UnsupportedField where the condition holds: the version cannot carry the value."""
        name = f"{layout.kind.__name__}.{place.attribute}"
        self.lines_if(condition.format(value=value), f"unsupported({name!r}, {layout.version})")

    def lines_if(self, condition: str, line: str) -> None:
        """Write a condition that does not part the run: it packs nothing."""
        self.line(f"if {condition}:")
        self.line(f"    {line}")

    def differs(self, layout: Layout, place: Place, source: str) -> str:
        """The condition under which a field does not hold its default."""
        value = f"{source}.{place.attribute}"
        if place.default is None:
            return f"{value} is not None"
        if place.is_array:
            return f"({value} is None or {value})" if place.nullable else value
        kind = layout.nested(place.type).kind if place.is_struct else None
        default = self.default(place, kind)
        return f"{value} is not {default} and {value} != {default}" if kind else f"{value} != {default}"

    def value(self, layout: Layout, place: Place, value: str) -> None:
        """Write one value."""
        if place.format:
            self.run.append((place.format, value))
        elif place.is_array:
            self.array(layout, place, value)
        elif place.is_struct:
            self.nested(layout, place, value)
        elif place.type == "records":
            self.records(layout, place, value)
        else:
            self.sized(layout, place, value)

    def sized(self, layout: Layout, place: Place, value: str) -> None:
        """Write a string or bytes."""
        extra = " + 1" if place.compact else ""
        taken = "s.encode()" if place.type == "string" else "s"
        if place.attribute.endswith(OF_OUR_WORDS):
            taken = "cut_message(s.encode())"
        self.line(f"s = {value}")
        if place.nullable:
            self.line("if s is None:")
            self.line(f"    s, n = b'', {0 if place.compact else -1}")
            self.line("else:")
            self.line(f"    s = {taken}")
            self.line(f"    n = len(s){extra}")
        else:
            self.refuse(layout, place, value, "s is None")
            self.line(f"s = {taken}")
            self.line(f"n = len(s){extra}")
        self.length(place)
        self.line(f"{self.add}(s)")

    def length(self, place: Place) -> None:
        """Write the length `n`, in one call with the values collected before it where it fits one byte."""
        is_string = place.type == "string"
        if not place.compact:
            self.run.append(("h" if is_string else "i", "n"))
            self.flush()
            return
        before = self.run
        self.run = [*before, ("B", "n")]
        self.line("if n < 128:")
        self._depth += 1
        self.flush()
        self._depth -= 1
        self.run = before
        self.line("else:")
        self._depth += 1
        self.flush()
        self.line(f"{self.add}({'string_length' if is_string else 'uvarint'}(n))")
        self._depth -= 1

    def records(self, layout: Layout, place: Place, value: str) -> None:
        """Write a batch, given as one buffer or several; a large one goes out as it is."""
        self.line(f"s = {value}")
        extra = " + 1" if place.compact else ""
        null = 0 if place.compact else -1
        if not place.nullable:
            self.refuse(layout, place, value, "s is None")
        self.line(f"n = {null} if s is None else (size_of(s) if type(s) is list else len(s)){extra}")
        self.length(place)
        with self.block("if s:"):
            with self.block(f"if n >= {UNCOPIED_BYTES_MIN}:"):
                self.line("parts.append(join(pieces))")
                self.line("pieces.clear()")
            target = f"(parts if n >= {UNCOPIED_BYTES_MIN} else pieces)"
            self.line(f"{target}.extend(s if type(s) is list else (s,))")

    def nested(self, layout: Layout, place: Place, value: str) -> None:
        """Write a struct that is a field."""
        variable = self.fresh("x")
        self.line(f"{variable} = {value}")
        if not place.nullable:
            self.refuse(layout, place, value, f"{variable} is None")
            self.struct(layout.nested(place.type), variable)
            return
        with self.block(f"if {variable} is None:"):
            self.run.append(("b", "0" if place.tag >= 0 else "-1"))
        with self.block("else:"):
            self.run.append(("b", "1"))
            self.struct(layout.nested(place.type), variable)

    def array(self, layout: Layout, place: Place, value: str) -> None:
        """Write an array."""
        items = self.fresh("items")
        extra = " + 1" if place.compact else ""
        self.line(f"{items} = {value}")
        if place.nullable:
            null = 0 if place.compact else -1
            self.line(f"n = {null} if {items} is None else len({items}){extra}")
        else:
            self.refuse(layout, place, value, f"{items} is None")
            self.line(f"n = len({items}){extra}")
        self.length(place)
        element = place.element
        if element.format in {*FORMATS.values()} - {"16s"}:
            self.line(f"if {items}:")
            pack = self.methods("pack", str(element.format))
            self.line(f"    {self.add}({pack}[len({items})](*{items}))")
            return
        outer = self.arrays
        self.arrays = (*outer, place.attribute)
        if self.arrays == self.encoded:
            self.pass_through(items)
            self.arrays = outer
            return
        variable = self.fresh("x")
        with self.block(f"for {variable} in {items} or ():"):
            if element.is_struct:
                self.struct(layout.nested(element.type), variable)
            else:
                self.value(layout, element, variable)
            if not outer and element.is_struct:
                self.join_many()
        self.arrays = outer
        if not element.is_struct:
            self.join_many()

    def pass_through(self, items: str) -> None:
        """Write code that sends encoded elements as they are, unless they are few."""
        self.line(f"if {items}.size_bytes >= {UNCOPIED_BYTES_MIN}:")
        self.line("    parts.append(join(pieces))")
        self.line("    pieces.clear()")
        self.line(f"(parts if {items}.size_bytes >= {UNCOPIED_BYTES_MIN} else pieces).extend({items}.pieces)")

    def join_many(self) -> None:
        """Write code that joins the pieces so far if they are many; those of a tagged field are joined apart."""
        if self.add == "add":
            self.flush()
            self.line(f"if len(pieces) > {PIECES_MAX}:")
            self.line("    parts.append(join(pieces))")
            self.line("    pieces.clear()")

    def tags(self, layout: Layout, source: str) -> None:
        """Write the count of tagged fields and those that differ from their defaults."""
        if not layout.tagged:
            self.run.append(("B", "0"))
            return
        self.line("tags = 0")
        for place in layout.tagged:
            self.lines_if(self.differs(layout, place, source), "tags += 1")
        self.run.append(("B", "tags"))
        with self.block("if tags:"):
            for place in layout.tagged:
                with self.block(f"if {self.differs(layout, place, source)}:"):
                    self.tagged(layout, place, f"{source}.{place.attribute}")

    def tagged(self, layout: Layout, place: Place, value: str) -> None:
        """Write one tagged field: tag, size, content."""
        outer, inner = self.add, self.fresh("tagged")
        self.line(f"{inner} = []")
        self.add = f"{inner}.append"
        self.value(layout, place, value)
        self.flush()
        self.add = outer
        self.line(f"{inner} = join({inner})")
        self.line(f"{self.add}(uvarint({place.tag}) + uvarint(len({inner})) + {inner})")


class ElementsSource(EncoderSource):
    """Source of an encoder of several structs of one kind."""

    def body(self, layout: Layout) -> None:
        """Write the code for all of them."""
        with self.block("for x in message:"):
            self.struct(layout, "x")
            self.join_many()
