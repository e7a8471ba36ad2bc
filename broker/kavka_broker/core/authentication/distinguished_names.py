"""The name of a certificate's subject, as Java's `X500Principal.getName()` writes it, for which Kafka's rules are made.

RFC 2253 leaves room, and Java fills it in its own way. Nine attributes have a keyword; any other is written as its
number and the DER of its value in hexadecimal, and so is a value of a type that Java does not take for text. Java reads
text as UTF-8, whatever its type says. OpenSSL and Python's `ssl` write other names, so this module reads the DER.
"""

import re
from typing import Final, NamedTuple

KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
SEQUENCE: Final = 0x30
SET: Final = 0x31
OBJECT_ID: Final = 0x06
VERSION: Final = 0xA0
TEXTS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString and BMPString."""
FIELDS_BEFORE_SUBJECT: Final = 4
"""Serial number, signature, issuer and validity. A version may stand before them."""
LENGTH_BYTES_MAX: Final = 4
_ESCAPED: Final = str.maketrans({"\0": "\\00", **{sign: f"\\{sign}" for sign in ',=+<>#;"\\'}})
_BLANKS: Final = " \r"
_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""Java puts one replacement character for it, and Python would put one for each byte."""


class DerError(ValueError):
    """Bytes that are no DER of what they should be."""


class _Element(NamedTuple):
    tag: int
    content: bytes

    def inside(self, tag: int) -> "list[_Element]":
        """Return the elements in this one, which has to have `tag`. Raises DerError."""
        if self.tag != tag:
            raise DerError(f"an element with the tag {self.tag} where one with the tag {tag} is due")
        return _elements(self.content)

    @property
    def der(self) -> bytes:
        """The element with its tag and length."""
        size = len(self.content)
        if size < 0x80:
            return bytes((self.tag, size)) + self.content
        length = size.to_bytes((size.bit_length() + 7) // 8, "big")
        return bytes((self.tag, 0x80 + len(length))) + length + self.content


def subject_of(certificate: bytes) -> bytes:
    """The DER of the subject of a certificate in DER. Raises DerError."""
    try:
        fields = _elements(certificate)[0].inside(SEQUENCE)[0].inside(SEQUENCE)
        return fields[FIELDS_BEFORE_SUBJECT + (fields[0].tag == VERSION)].der
    except IndexError:
        raise DerError("a certificate without a subject") from None


def distinguished_name(subject: bytes) -> str:
    """The name of a subject in DER, its last part first: CN=client,OU=streams,O=us. Raises DerError."""
    names = _elements(subject)
    if len(names) != 1:
        raise DerError("no subject, or several")
    parts = [part.inside(SET) for part in names[0].inside(SEQUENCE)]
    return ",".join("+".join(_written(pair.inside(SEQUENCE)) for pair in part) for part in reversed(parts))


def _written(pair: list[_Element]) -> str:
    if len(pair) != 2:
        raise DerError("an attribute with no value, or several")
    attribute, value = pair
    number = _number(attribute)
    keyword = KEYWORDS.get(number)
    if keyword is None or value.tag not in TEXTS:
        return f"{keyword or number}=#{value.der.hex()}"
    text = _SURROGATE.sub(b"\xff", value.content).decode("utf-8", "replace").translate(_ESCAPED)
    inner = text.lstrip(_BLANKS)
    before, inner = text[: len(text) - len(inner)], inner.rstrip(_BLANKS)
    after = text[len(before) + len(inner) :]
    return f"{keyword}={_escaped(before)}{inner}{_escaped(after)}"


def _escaped(blanks: str) -> str:
    return "".join(f"\\{blank}" for blank in blanks)


def _number(attribute: _Element) -> str:
    """The dotted number of an object identifier. Raises DerError."""
    if attribute.tag != OBJECT_ID or not attribute.content or attribute.content[-1] & 0x80:
        raise DerError("an attribute without a number")
    arcs, arc = list[int](), 0
    for byte in attribute.content:
        arc = arc << 7 | byte & 0x7F
        if not byte & 0x80:
            arcs.append(arc)
            arc = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(map(str, (first, arcs[0] - 40 * first, *arcs[1:])))


def _elements(data: bytes) -> list[_Element]:
    """The elements that stand one behind the other. Raises DerError."""
    found, place = list[_Element](), 0
    while place < len(data):
        begin, end = _content(data, place)
        found.append(_Element(data[place], data[begin:end]))
        place = end
    return found


def _content(data: bytes, place: int) -> tuple[int, int]:
    """Where the content of the element at `place` begins and ends. Raises DerError."""
    begin = place + 2
    size = data[place + 1] if begin <= len(data) else 0x80
    if size >= 0x80:
        count = size - 0x80
        size, begin = int.from_bytes(data[begin : begin + count], "big"), begin + count
        if not 0 < count <= LENGTH_BYTES_MAX or size < 0x80 or size.bit_length() <= 8 * (count - 1):
            raise DerError("a length that is no DER")
    if begin + size > len(data):
        raise DerError("an element that is cut off")
    return begin, begin + size
