"""Public keys that sign tokens: a JSON Web Key Set (RFC 7517), and signatures by RSA (RFC 8017, RSASSA-PKCS1-v1_5).

To check a signature no secret is needed, so no library that holds secrets well: the signature is raised to the public
exponent, and has to be, byte for byte, what a right one gives. Nothing of it is parsed. Keys of other kinds, below
2,048 bits or above 4,096, or for encryption are left out.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import new
from typing import Any, Final

from kavka_broker.core.authentication.strict_json import JsonError, parse_object

BITS_MIN: Final = 2048
BITS_MAX: Final = 4_096  # 16,384 take up to 27 ms of the loop
EXPONENT_MAX: Final = 65_537
KEYS_MAX: Final = 100
#: By algorithm: the hash, and what PKCS #1 puts before it (the DER of its name and length).
ALGORITHMS: Final = {
    "RS256": ("sha256", bytes.fromhex("3031300d060960864801650304020105000420")),
    "RS384": ("sha384", bytes.fromhex("3041300d060960864801650304020205000430")),
    "RS512": ("sha512", bytes.fromhex("3051300d060960864801650304020305000440")),
}
_BASE64_URL: Final = re.compile(r"[A-Za-z0-9_-]*")


class KeySetError(Exception):
    """What was read is no set of keys, or has none that can be used; the message says why."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key of RSA. `algorithm` is empty where it may be any."""

    key_id: str
    algorithm: str
    modulus: int
    exponent: int

    def has_signed(self, algorithm: str, covered: bytes, signature: bytes) -> bool:
        """Whether a signature of these bytes was made with the private half of this key."""
        size_bytes, number = (self.modulus.bit_length() + 7) // 8, int.from_bytes(signature, "big")
        if self.algorithm not in ("", algorithm) or len(signature) != size_bytes or number >= self.modulus:
            return False
        name, prefix = ALGORITHMS[algorithm]
        end = prefix + new(name, covered).digest()
        padding = b"\xff" * (size_bytes - len(end) - 3)
        right = b"\x00\x01" + padding + b"\x00" + end
        return pow(number, self.exponent, self.modulus).to_bytes(size_bytes, "big") == right


def parse_keys(text: bytes) -> tuple[SigningKey, ...]:
    """The keys of a set that can be used. Raises KeySetError where there is none."""
    try:
        found = parse_object(text).get("keys")
    except JsonError as error:
        raise KeySetError(f"is no JSON Web Key Set: {error}") from None
    if not isinstance(found, list):
        raise KeySetError("is no JSON Web Key Set: it has no list of keys")
    keys = tuple(_usable(found[:KEYS_MAX]))
    if not keys:
        raise KeySetError(f"has no key of RSA for {', '.join(ALGORITHMS)} with {BITS_MIN} bits or more")
    return keys


def _usable(found: Iterable[Any]) -> Iterable[SigningKey]:
    for key in found:
        if not isinstance(key, dict) or key.get("kty") != "RSA" or key.get("use", "sig") != "sig":
            continue
        modulus, exponent = (_number(key.get(name)) for name in ("n", "e"))
        key_id, algorithm = key.get("kid", ""), key.get("alg", "")
        is_named = isinstance(key_id, str) and algorithm in ("", *ALGORITHMS)
        is_strong = BITS_MIN <= modulus.bit_length() <= BITS_MAX and modulus % 2 == 1
        if is_named and is_strong and 3 <= exponent <= EXPONENT_MAX and exponent % 2 == 1:
            yield SigningKey(key_id, algorithm, modulus, exponent)


def _number(text: object) -> int:
    """A positive number of a key; 0 where it is none."""
    data = decode(text) if isinstance(text, str) else None
    return 0 if data is None else int.from_bytes(data, "big")


def decode(text: str) -> bytes | None:
    """Bytes of base64url without padding; None where it is none."""
    if len(text) % 4 == 1 or _BASE64_URL.fullmatch(text) is None:
        return None
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
