"""An entry as a Kafka record: CloudEvents 1.0 in binary mode, with the chain in headers of its own.

The value is the event alone, so that a consumer that knows nothing of chains reads plain OCSF. Losses and heads have no
value, except for the first head, which names the ends of chains before. The name of a header is `ce_` and an attribute;
hashes are in hexadecimal digits.
"""

from collections.abc import Sequence
from typing import Final

from kavka_broker.core.audit.chain import HASH_BYTES, SEQUENCE_MAX, Entry, Kind
from kavka_broker.core.audit.keys import ID_BYTES, SIGNATURE_BYTES

TYPE_PREFIX: Final = "dev.kavka.audit."
SOURCE_PREFIX: Final = "kavka:"
TEXT_MAX: Final = 200
"""What a message repeats of a header that is none of a trail."""
Header = tuple[str, bytes | None]


def headers_of(entry: Entry) -> list[Header]:
    """Return the headers of an entry's record."""
    texts = {
        "ce_specversion": "1.0",
        "ce_id": f"{entry.source}-{entry.sequence}",
        "ce_source": f"{SOURCE_PREFIX}{entry.source}",
        "ce_type": f"{TYPE_PREFIX}{entry.kind}",
        "ce_sequence": str(entry.sequence),
        "ce_chaintime": str(entry.time_ms),
        "ce_chainlost": str(entry.lost),
        "ce_chainprevious": entry.previous.hex(),
        "ce_chainhash": entry.hash.hex(),
        "content-type": "application/json",
    }
    if entry.signature:
        texts["ce_chainsignature"] = entry.signature.hex()
    if entry.key_id:
        texts["ce_chainkeyid"] = entry.key_id
    return [(name, text.encode()) for name, text in texts.items()]


def entry_of(headers: Sequence[Header], value: bytes | None) -> Entry:
    """Return the entry of a record. Raises ValueError, which names the header, where the record is none."""
    texts = {name: (text or b"").decode(errors="replace") for name, text in headers}
    kind = _after(texts, "ce_type", TYPE_PREFIX)
    if kind not in set(Kind):
        raise ValueError(f"ce_type: {kind!r} is no kind of entry; they are {', '.join(Kind)}")
    return Entry(
        _after(texts, "ce_source", SOURCE_PREFIX),
        _whole(texts, "ce_sequence"),
        Kind(kind),
        _whole(texts, "ce_chaintime"),
        value or b"",
        _whole(texts, "ce_chainlost"),
        _digits(texts, "ce_chainprevious"),
        _digits(texts, "ce_chainhash"),
        _digits(texts, "ce_chainsignature", SIGNATURE_BYTES) if "ce_chainsignature" in texts else b"",
        _digits(texts, "ce_chainkeyid", (ID_BYTES,)).hex() if texts.get("ce_chainkeyid") else "",
    )


def _after(texts: dict[str, str], name: str, prefix: str) -> str:
    text = texts.get(name, "")
    if not text.startswith(prefix):
        raise ValueError(f"{name}: {text!r} does not begin with {prefix}")
    return text.removeprefix(prefix)


def _whole(texts: dict[str, str], name: str) -> int:
    text = texts.get(name, "")
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) <= SEQUENCE_MAX):
        raise ValueError(f"{name}: {text!r} is no number from 0 to {SEQUENCE_MAX}")
    return int(text)


def _digits(texts: dict[str, str], name: str, lengths: Sequence[int] = (HASH_BYTES,)) -> bytes:
    text = texts.get(name, "")
    digits = set("0123456789abcdef")
    if len(text) not in {2 * length for length in lengths} or not digits.issuperset(text):
        words = " or ".join(map(str, lengths))
        raise ValueError(f"{name}: {text[:TEXT_MAX]!r} is not {words} bytes in hexadecimal digits")
    return bytes.fromhex(text)
