"""Subjects of certificates in DER, drawn in every form that X.501 allows, and in some that it does not."""

import random
from collections.abc import Sequence
from typing import Final

TYPES: Final = {
    "UTF8String": (0x0C, "utf-8"),
    "NumericString": (0x12, "ascii"),
    "PrintableString": (0x13, "ascii"),
    "T61String": (0x14, "latin-1"),
    "IA5String": (0x16, "ascii"),
    "VisibleString": (0x1A, "ascii"),
    "GeneralString": (0x1B, "latin-1"),
    "UniversalString": (0x1C, "utf-32-be"),
    "BMPString": (0x1E, "utf-16-be"),
}
NUMBERS: Final = {
    "CN": "2.5.4.3",
    "C": "2.5.4.6",
    "L": "2.5.4.7",
    "ST": "2.5.4.8",
    "STREET": "2.5.4.9",
    "O": "2.5.4.10",
    "OU": "2.5.4.11",
    "UID": "0.9.2342.19200300.100.1.1",
    "DC": "0.9.2342.19200300.100.1.25",
    "surname": "2.5.4.4",
    "serialNumber": "2.5.4.5",
    "title": "2.5.4.12",
    "givenName": "2.5.4.42",
    "dnQualifier": "2.5.4.46",
    "emailAddress": "1.2.840.113549.1.9.1",
    "own": "1.2.3.4.5",
    "large": "2.999.340282366920938463463374607431768211455",
}
PIECES_OF_UTF8: Final = b" =a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe2\xed\xef\xf0\xf1\xf4\xf5\xff"
Pair = tuple[str, str, bytes]
"""An attribute by name, the type of its value, and the value as it stands in DER."""


def text(attribute: str, value: str, kind: str = "UTF8String") -> Pair:
    """An attribute with a text, encoded as its type has it."""
    return attribute, kind, value.encode(TYPES[kind][1])


def subject(*names: Sequence[Pair]) -> bytes:
    """A subject in DER, of names that have an attribute or several."""
    return _element(0x30, b"".join(_element(0x31, b"".join(map(_pair, pairs))) for pairs in names))


def draw_subject(chance: random.Random) -> bytes:
    """A subject of up to four names, with text that needs care in every type."""
    return subject(
        *([_draw(chance) for _ in range(chance.choice((1, 1, 1, 2, 3)))] for _ in range(chance.randrange(5)))
    )


def _draw(chance: random.Random) -> Pair:
    kind = chance.choice(list(TYPES))
    signs = ' \r\n\t\0,=+<>#;"\\/abcÄ\u0130\u20ac\ud7ff\uffff\U0001f600\U0010ffff'
    value = "".join(chance.choice(signs) for _ in range(chance.choice((0, 1, 2, 3, 8, 130))))
    content = value.encode(TYPES[kind][1], "replace")
    if chance.random() < 0.3:
        content = bytes(chance.choice(PIECES_OF_UTF8) for _ in range(chance.randrange(6)))
    return chance.choice(list(NUMBERS)), kind, content


def _pair(pair: Pair) -> bytes:
    attribute, kind, value = pair
    return _element(0x30, _element(0x06, _number(NUMBERS[attribute])) + _element(TYPES[kind][0], value))


def _number(dotted: str) -> bytes:
    first, second, *rest = map(int, dotted.split("."))
    return b"".join(_arc(arc) for arc in (40 * first + second, *rest))


def _arc(arc: int) -> bytes:
    sevens = [arc & 0x7F]
    while arc := arc >> 7:
        sevens.append(arc & 0x7F | 0x80)
    return bytes(reversed(sevens))


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes((size,)) if size < 0x80 else _long(size)
    return bytes((tag,)) + length + content


def _long(size: int) -> bytes:
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((0x80 + len(digits),)) + digits


def certificate(subject_der: bytes, *, has_version: bool) -> bytes:
    """The outside of a certificate in DER with this subject; nothing in it is signed."""
    version = _element(0xA0, _element(0x02, b"\x02")) if has_version else b""
    issuer = subject([text("CN", "issuer")])
    before = (_element(0x02, b"\x01"), _element(0x30, b""), issuer, _element(0x30, b""))
    fields = (version, *before, subject_der, _element(0x30, b""), _element(0xA3, b""))
    return _element(0x30, _element(0x30, b"".join(fields)) + _element(0x30, b"") + _element(0x03, b"\0"))
