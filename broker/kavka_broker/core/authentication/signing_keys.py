"""Public keys that sign tokens: a JSON Web Key Set (RFC 7517) with keys of RSA (RFC 8017) and of the curve P-256.

To check a signature no secret is needed, so no library that holds secrets well. By PKCS #1 v1.5 (RS256 and its kin) it
has to be, byte for byte, what a right one gives, and nothing of it is parsed; by PSS (PS256 and its kin) the salt is as
long as the hash, and all other bytes are given; ES256 is in `p256.py`. Keys of other kinds, below 2,048 bits or above
4,096, or for encryption are left out.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import new
from hmac import compare_digest
from typing import Any, ClassVar, Final

from kavka_broker.core.authentication import p256
from kavka_broker.core.authentication.strict_json import JsonError, parse_object

BITS_MIN: Final = 2048
BITS_MAX: Final = 4_096  # 16,384 take up to 27 ms of the loop
EXPONENT_MAX: Final = 65_537
KEYS_MAX: Final = 100
#: By algorithm: the hash, and what PKCS #1 puts before it (the DER of its name and length).
BY_PKCS_1: Final = {
    "RS256": ("sha256", bytes.fromhex("3031300d060960864801650304020105000420")),
    "RS384": ("sha384", bytes.fromhex("3041300d060960864801650304020205000430")),
    "RS512": ("sha512", bytes.fromhex("3051300d060960864801650304020305000440")),
}
BY_PSS: Final = {"PS256": "sha256", "PS384": "sha384", "PS512": "sha512"}
ES256: Final = "ES256"
ALGORITHMS: Final = (*BY_PKCS_1, *BY_PSS, ES256)
_BASE64_URL: Final = re.compile(r"[A-Za-z0-9_-]*")


class KeySetError(Exception):
    """What was read is no set of keys, or has none that can be used; the message says why."""


@dataclass(frozen=True, slots=True)
class RsaKey:
    """A public key of RSA. `algorithm` is empty where it may be any."""

    ALGORITHMS: ClassVar = (*BY_PKCS_1, *BY_PSS)

    key_id: str
    algorithm: str
    modulus: int
    exponent: int

    def has_signed(self, algorithm: str, covered: bytes, signature: bytes) -> bool:
        """Whether a signature of these bytes was made with the private half of this key."""
        size_bytes, number = (self.modulus.bit_length() + 7) // 8, int.from_bytes(signature, "big")
        if len(signature) != size_bytes or number >= self.modulus:
            return False
        raised = pow(number, self.exponent, self.modulus)
        if algorithm in BY_PSS:
            return is_padded_by_pss(raised, self.modulus.bit_length() - 1, new(BY_PSS[algorithm], covered))
        name, prefix = BY_PKCS_1[algorithm]
        end = prefix + new(name, covered).digest()
        padding = b"\xff" * (size_bytes - len(end) - 3)
        right = b"\x00\x01" + padding + b"\x00" + end
        return raised.to_bytes(size_bytes, "big") == right


@dataclass(frozen=True, slots=True)
class CurveKey:
    """A public key of the curve P-256."""

    ALGORITHMS: ClassVar = (ES256,)

    key_id: str
    algorithm: str
    point: p256.Point

    def has_signed(self, algorithm: str, covered: bytes, signature: bytes) -> bool:
        """Whether a signature of these bytes was made with the private half of this key."""
        del algorithm
        return p256.has_signed(self.point, new("sha256", covered).digest(), signature)


SigningKey = RsaKey | CurveKey


def is_padded_by_pss(raised: int, bits: int, covered: Any) -> bool:
    """Whether a signature that was raised is right by EMSA-PSS with MGF1 (RFC 8017, 9.1.2); `covered` is the hash."""
    size_bytes, length = (bits + 7) // 8, covered.digest_size
    unused_bits = 8 * size_bytes - bits
    if raised.bit_length() > bits:
        return False
    block = raised.to_bytes(size_bytes, "big")
    masked, digest, trailer = block[: -length - 1], block[-length - 1 : -1], block[-1]
    mask = _mask(digest, len(masked), covered.name)
    plain = bytearray(left ^ right for left, right in zip(masked, mask, strict=True))
    plain[0] &= 0xFF >> unused_bits
    zeros, salt = plain[: -length - 1], plain[-length:]
    right = new(covered.name, bytes(8) + covered.digest() + salt).digest()
    return trailer == 0xBC and not any(zeros) and plain[-length - 1] == 1 and compare_digest(digest, right)


def _mask(seed: bytes, size_bytes: int, name: str) -> bytes:
    counters = range(-(-size_bytes // new(name).digest_size))
    return b"".join(new(name, seed + number.to_bytes(4, "big")).digest() for number in counters)[:size_bytes]


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
        raise KeySetError(
            f"has no key for {', '.join(ALGORITHMS)} (of RSA with {BITS_MIN} to {BITS_MAX} bits, or of P-256)"
        )
    return keys


def _usable(found: Iterable[Any]) -> Iterator[SigningKey]:
    for key in found:
        if not isinstance(key, dict) or key.get("use", "sig") != "sig" or not isinstance(key.get("kid", ""), str):
            continue
        made = _of_rsa(key) if key.get("kty") == "RSA" else _of_curve(key) if key.get("kty") == "EC" else None
        if made is not None and made.algorithm in ("", *made.ALGORITHMS):
            yield made


def _of_rsa(key: dict[str, Any]) -> RsaKey | None:
    modulus, exponent = (_number(key.get(name)) for name in ("n", "e"))
    is_strong = BITS_MIN <= modulus.bit_length() <= BITS_MAX and modulus % 2 == 1
    if not is_strong or not 3 <= exponent <= EXPONENT_MAX or exponent % 2 == 0:
        return None
    return RsaKey(key.get("kid", ""), key.get("alg", ""), modulus, exponent)


def _of_curve(key: dict[str, Any]) -> CurveKey | None:
    point = p256.Point(*(_number(key.get(name)) for name in ("x", "y")))
    if key.get("crv") != "P-256" or not point.is_on_curve:
        return None
    return CurveKey(key.get("kid", ""), key.get("alg", ""), point)


def _number(text: object) -> int:
    """A positive number of a key; 0 where it is none."""
    data = decode(text) if isinstance(text, str) else None
    return 0 if data is None else int.from_bytes(data, "big")


def decode(text: str) -> bytes | None:
    """Bytes of base64url without padding; None where it is none."""
    if len(text) % 4 == 1 or _BASE64_URL.fullmatch(text) is None:
        return None
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
