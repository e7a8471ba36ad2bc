"""Public keys that sign tokens: a JSON Web Key Set (RFC 7517) with keys of RSA, of three curves, and of Ed25519.

What a key is and whether it has signed is for PyJWT and `cryptography` to say (RFC 7518, RFC 8037), which come with an
extra. What they are asked is ours: the algorithms of a key are those of its kind, or the one that it names, so that no
token chooses how a key is used; its members are read strictly; only public members go in. Keys of other kinds, of RSA
below 2,048 bits or above 4,096, or for encryption are left out.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Final

from kavka_broker.core.authentication.strict_json import JsonError, parse_object

BITS_MIN: Final = 2048
BITS_MAX: Final = 4_096  # the time that a signature takes grows with the square
EXPONENT_MAX: Final = 65_537
KEYS_MAX: Final = 100
BY_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
#: By curve: the algorithm, and the bytes of a coordinate.
BY_CURVE: Final = {"P-256": ("ES256", 32), "P-384": ("ES384", 48), "P-521": ("ES512", 66)}
ES: Final = tuple(algorithm for algorithm, _ in BY_CURVE.values())
ED25519: Final = "Ed25519"
EDDSA: Final = "EdDSA"
ALGORITHMS: Final = (*BY_RSA, *ES, EDDSA)
LACK: Final = "OAUTHBEARER needs the packages pyjwt and cryptography: pip install 'kavka-broker[oauth]'"
_BASE64_URL: Final = re.compile(r"[A-Za-z0-9_-]*")


class KeySetError(Exception):
    """What was read is no set of keys, or has none that can be used; the message says why."""


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A public key, and by which algorithms it signs."""

    key_id: str
    algorithms: tuple[str, ...]
    public: Any  # of the package cryptography, which a broker without tokens does not need

    def has_signed(self, algorithm: str, covered: bytes, signature: bytes) -> bool:
        """Whether a signature of these bytes was made with the private half of this key by one of its algorithms."""
        from jwt import get_algorithm_by_name

        assert algorithm in self.algorithms, "a key is asked by its own algorithms alone"
        return bool(get_algorithm_by_name(algorithm).verify(covered, self.public, signature))


def lack() -> str:
    """What has to be installed to judge tokens, in words; nothing where all is there."""
    return "" if all(find_spec(name) is not None for name in ("jwt", "cryptography")) else LACK


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
            f"has no key for {', '.join(ALGORITHMS)} (of RSA with {BITS_MIN} to {BITS_MAX} bits, "
            f"of {', '.join(BY_CURVE)}, or of {ED25519})"
        )
    return keys


def _usable(found: Iterable[Any]) -> Iterator[SigningKey]:
    for key in found:
        if not isinstance(key, dict) or key.get("use", "sig") != "sig" or not isinstance(key.get("kid", ""), str):
            continue
        of_kind, public = _kind_of(key)
        algorithms = tuple(name for name in of_kind if key.get("alg", "") in ("", name))
        if algorithms and (made := _made(algorithms[0], public)) is not None:
            yield SigningKey(key.get("kid", ""), algorithms, made)


def _kind_of(key: dict[str, Any]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The algorithms of a key by its kind, and its public members, each of the right size; none for one of no use."""
    kind, curve = key.get("kty"), key.get("crv")
    if kind == "RSA":
        modulus, exponent = (_number(key.get(name)) for name in ("n", "e"))
        is_strong = BITS_MIN <= modulus.bit_length() <= BITS_MAX and modulus % 2 == 1
        if is_strong and 3 <= exponent <= EXPONENT_MAX and exponent % 2 == 1:
            return BY_RSA, {"kty": kind, "n": key["n"], "e": key["e"]}
    if kind == "EC" and isinstance(curve, str) and curve in BY_CURVE:
        algorithm, size_bytes = BY_CURVE[curve]
        x, y = (_number(key.get(name)) for name in ("x", "y"))
        if max(x, y).bit_length() <= 8 * size_bytes:
            # Like Apache Kafka it takes coordinates whose leading zeros an issuer has left out; PyJWT does not.
            return (algorithm,), {"kty": kind, "crv": curve, "x": _text(x, size_bytes), "y": _text(y, size_bytes)}
    if kind == "OKP" and curve == ED25519 and isinstance(key.get("x"), str) and decode(key["x"]) is not None:
        return (EDDSA,), {"kty": kind, "crv": curve, "x": key["x"]}
    return (), {}


def _made(algorithm: str, public: dict[str, str]) -> Any:
    """A key out of its members; None where they are none, as a point off its curve. Raises ImportError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from jwt import PyJWK, PyJWTError

    try:
        return PyJWK(public, algorithm).key
    except (PyJWTError, UnsupportedAlgorithm):
        return None


def _number(text: object) -> int:
    """A positive number of a key; 0 where it is none."""
    data = decode(text) if isinstance(text, str) else None
    return 0 if data is None else int.from_bytes(data, "big")


def _text(number: int, size_bytes: int) -> str:
    return urlsafe_b64encode(number.to_bytes(size_bytes, "big")).rstrip(b"=").decode()


def decode(text: str) -> bytes | None:
    """Bytes of base64url without padding; None where it is none."""
    if len(text) % 4 == 1 or _BASE64_URL.fullmatch(text) is None:
        return None
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
