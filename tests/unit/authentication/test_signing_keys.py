"""Keys of tokens: which of a set are used, and that each byte of a signature counts. Keys are of openssl."""

import json
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.authentication.signing_keys import KeySetError, SigningKey, decode, lack, parse_keys
from tests.support.tokens import ALGORITHM_OF, Issuer, encoded

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Of P-256."""


@pytest.fixture(scope="module")
def issuers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Issuer]:
    """An issuer by the algorithm of its key."""
    directory = tmp_path_factory.mktemp("issuers")
    return {name: Issuer(directory, name, curve=curve) for curve, name in ALGORITHM_OF.items()}


def only(*keys: Mapping[str, object]) -> SigningKey:
    """The one key of a set that is of use."""
    (key,) = parse_keys(json.dumps({"keys": keys}).encode())
    return key


def signed(issuer: Issuer, number: int = 0) -> tuple[bytes, bytes]:
    """What is covered by a signature, and the signature."""
    covered, _, text = issuer.token({"n": number}).rpartition(".")
    signature = decode(text)
    assert signature is not None
    return covered.encode(), signature


@pytest.mark.parametrize("algorithm", ALGORITHM_OF.values())
def test_each_byte_of_a_signature_counts(issuers: dict[str, Issuer], algorithm: str) -> None:
    key = only(issuers[algorithm].key)
    for number in range(3):
        assert key.has_signed(algorithm, *signed(issuers[algorithm], number))
    covered, signature = signed(issuers[algorithm])
    for place in range(len(signature)):
        changed = signature[:place] + bytes([signature[place] ^ 1]) + signature[place + 1 :]
        assert not key.has_signed(algorithm, covered, changed)
    assert not key.has_signed(algorithm, covered + b" ", signature)
    half = len(signature) // 2
    padded = b"\0" + signature[:half] + b"\0" + signature[half:]
    for other in (b"", signature[:-1], signature[1:], signature + b"\0", b"\0" + signature, padded):
        assert not key.has_signed(algorithm, covered, other)


@pytest.mark.parametrize("algorithm", ALGORITHM_OF.values())
def test_no_bytes_of_a_stranger_are_more_than_wrong(issuers: dict[str, Issuer], algorithm: str) -> None:
    key = only(issuers[algorithm].key)

    @given(st.binary(max_size=600))
    def check(signature: bytes) -> None:
        assert not key.has_signed(algorithm, b"covered", signature)

    check()


@pytest.mark.parametrize("algorithm", ["ES256", "ES384", "ES512"])
def test_a_signature_in_der_is_none_of_tokens(issuers: dict[str, Issuer], algorithm: str) -> None:
    covered, signature = signed(issuers[algorithm])
    half = len(signature) // 2
    numbers = [int.from_bytes(part, "big") for part in (signature[:half], signature[half:])]
    parts = [number.to_bytes(half + 1, "big").lstrip(b"\0") for number in numbers]
    parts = [b"\0" + part if part[0] & 0x80 else part for part in parts]
    body = b"".join(b"\x02" + bytes([len(part)]) + part for part in parts)
    der = b"\x30" + (b"\x81" if len(body) > 127 else b"") + bytes([len(body)]) + body
    assert not only(issuers[algorithm].key).has_signed(algorithm, covered, der)


def test_numbers_outside_the_order_of_the_curve_are_no_signature(issuers: dict[str, Issuer]) -> None:
    issuer = issuers["ES256"]
    covered, signature = signed(issuer)
    r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
    key = only(issuer.key)
    for pair in ((0, s), (r, 0), (ORDER, s), (r, ORDER), (0, 0), (2**256 - 1, s), (r, 2**256 - 1)):
        assert not key.has_signed("ES256", covered, b"".join(number.to_bytes(32, "big") for number in pair))
    assert key.has_signed("ES256", covered, signature[:32] + (ORDER - s).to_bytes(32, "big")), "as ECDSA is"


@pytest.mark.parametrize(
    ("algorithm", "change"),
    [
        *(
            ("ES256", change)
            for change in (
                {"crv": "P-384"},
                {"crv": "P-521"},
                {"crv": "secp256k1"},
                {"crv": ["P-256"]},
                {"crv": None},
                {"x": "AQ"},
                {"y": "AQ"},
                {"x": ""},
                {"x": 7},
                {"x": "!"},
                {"x": encoded(b"\1" + bytes(32))},
                {"alg": "RS256"},
                {"alg": "ES384"},
                {"alg": ["ES256"]},
                {"kty": "OKP"},
                {"kty": "oct", "k": "AAAA"},
                {"use": "enc"},
            )
        ),
        ("ES384", {"crv": "P-256"}),
        ("ES512", {"y": encoded(bytes(67))}),
        *(
            ("EdDSA", change)
            for change in ({"crv": "Ed448"}, {"crv": "X25519"}, {"x": "AQ"}, {"x": None}, {"x": encoded(bytes(33))})
        ),
        *(
            ("RS256", change)
            for change in ({"n": ""}, {"n": 7}, {"e": "Ag"}, {"e": "AQ"}, {"kty": "EC"}, {"alg": "HS256"})
        ),
    ],
)
def test_keys_that_are_none_are_left_out(issuers: dict[str, Issuer], algorithm: str, change: dict[str, object]) -> None:
    key = issuers[algorithm].key
    with pytest.raises(KeySetError):
        only({**key, **change})
    assert only({**key, **change}, key).algorithms[0] == algorithm, "a key of no use takes no other with it"


def test_a_key_that_names_its_algorithm_signs_by_that_alone(issuers: dict[str, Issuer]) -> None:
    assert only({**issuers["RS256"].key, "alg": "PS384"}).algorithms == ("PS384",)
    assert only(issuers["ES384"].key).algorithms == ("ES384",)


def test_private_members_of_a_key_are_not_looked_at(issuers: dict[str, Issuer]) -> None:
    for algorithm, issuer in issuers.items():
        private: dict[str, Any] = {**issuer.key, "d": "AQ", "p": "AQ", "oth": []}
        assert only(private).has_signed(algorithm, *signed(issuer))


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()])
def test_coordinates_may_lack_their_leading_zeros(curve: ec.EllipticCurve) -> None:
    name, size = f"P-{curve.key_size}", (curve.key_size + 7) // 8
    keys = (ec.derive_private_key(number, curve).public_key() for number in count(1))
    public = next(key for key in keys if key.public_numbers().x.bit_length() <= 8 * (size - 1))
    point = public.public_numbers()
    x, y = (encoded(value.to_bytes(length, "big")) for value, length in ((point.x, size - 1), (point.y, size)))
    key = only({"kty": "EC", "crv": name, "x": x, "y": y})
    assert key.public == public


def test_a_broker_without_tokens_imports_nothing_of_them() -> None:
    program = (
        "import sys, kavka_broker.runtime.server, kavka_broker.core.authentication.signing_keys;"
        "sys.exit(bool({'jwt', 'cryptography'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_nothing_is_lacking_where_tokens_can_be_judged() -> None:
    assert lack() == ""
