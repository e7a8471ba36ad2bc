"""The curve P-256: sums against the schoolbook's, signatures of openssl, and every way to be none."""

import json
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.authentication import p256
from kavka_broker.core.authentication.p256 import GENERATOR, INFINITY, ORDER, Jacobian, P, Point, has_signed
from kavka_broker.core.authentication.signing_keys import CurveKey, KeySetError, decode, parse_keys
from tests.support.tokens import Issuer

Affine = tuple[int, int] | None


def schoolbook(one: Affine, other: Affine) -> Affine:
    """The sum of two points, by the definition."""
    if one is None or other is None:
        return other if one is None else one
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % P == 0:
        return None
    slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, P) if one == other else (y2 - y1) * pow(x2 - x1, -1, P)
    x = (slope * slope - x1 - x2) % P
    return x, (slope * (x1 - x) - y1) % P


def times(number: int, point: Affine) -> Affine:
    total: Affine = None
    for bit in f"{number:b}":
        total = schoolbook(total, total)
        if bit == "1":
            total = schoolbook(total, point)
    return total


def affine(point: Jacobian) -> Affine:
    x, y, z = point
    return None if z == 0 else (x * pow(z, -2, P) % P, y * pow(z, -3, P) % P)


NUMBERS = st.integers(0, 40) | st.integers(ORDER - 40, ORDER + 40) | st.integers(0, 2**256 - 1)


@given(NUMBERS, NUMBERS, st.integers(1, 5) | st.integers(1, ORDER - 1))
def test_a_sum_of_products_is_that_of_the_schoolbook(first: int, second: int, multiple: int) -> None:
    """Also where a step meets the point at infinity, a point and itself, or a point and its negative."""
    other = times(multiple, GENERATOR)
    assert other is not None
    right = schoolbook(times(first, GENERATOR), times(second, other))
    assert affine(p256._sum_of_products(first, GENERATOR, second, Point(*other))) == right


def test_infinity_is_nothing_to_add_and_doubles_to_itself() -> None:
    one = (*GENERATOR, 1)
    assert p256._added(INFINITY, one) == one == p256._added(one, INFINITY)
    assert affine(p256._doubled(INFINITY)) is None
    assert affine(p256._added(one, (GENERATOR.x, P - GENERATOR.y, 1))) is None
    assert affine(p256._added(one, one)) == times(2, GENERATOR)


def test_the_generator_has_its_order() -> None:
    assert GENERATOR.is_on_curve
    assert affine(p256._sum_of_products(ORDER, GENERATOR, 0, GENERATOR)) is None


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("curve"), is_curve=True)


def key_of(issuer: Issuer) -> Point:
    (key,) = parse_keys(issuer.key_set())
    assert isinstance(key, CurveKey)
    return key.point


def signed(issuer: Issuer, number: int = 0) -> tuple[bytes, bytes]:
    """A digest and its signature."""
    covered, _, text = issuer.token({"n": number}, "ES256").rpartition(".")
    signature = decode(text)
    assert signature is not None
    return sha256(covered.encode()).digest(), signature


def test_signatures_of_openssl_are_right_and_each_byte_counts(issuer: Issuer) -> None:
    key = key_of(issuer)
    for number in range(10):
        assert has_signed(key, *signed(issuer, number))
    digest, signature = signed(issuer)
    for place in range(len(signature)):
        changed = signature[:place] + bytes([signature[place] ^ 1]) + signature[place + 1 :]
        assert not has_signed(key, digest, changed)
    assert not has_signed(key, sha256(b"other").digest(), signature)
    assert not has_signed(GENERATOR, digest, signature)


def test_numbers_outside_the_order_are_none(issuer: Issuer) -> None:
    digest, signature = signed(issuer)
    r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:]))
    key = key_of(issuer)
    for pair in ((0, s), (r, 0), (ORDER, s), (r, ORDER), (0, 0), (2**256 - 1, s), (r, 2**256 - 1)):
        assert not has_signed(key, digest, b"".join(number.to_bytes(32, "big") for number in pair))
    for other in (b"", signature[:-1], signature + b"\0", b"\0" + signature[:32] + b"\0" + signature[32:]):
        assert not has_signed(key, digest, other)
    assert has_signed(key, digest, signature[:32] + (ORDER - s).to_bytes(32, "big")), "as ECDSA is"


def test_a_sum_that_is_infinity_is_no_signature() -> None:
    """Of a key whose private half is 1: with r and s such that both products cancel."""
    r = 5
    digest = (ORDER - r).to_bytes(32, "big")
    assert not has_signed(GENERATOR, digest, r.to_bytes(32, "big") + (7).to_bytes(32, "big"))


@pytest.mark.parametrize("change", [{"crv": "P-384"}, {"x": "AQ"}, {"y": "AQ"}, {"x": ""}, {"x": 7}, {"alg": "RS256"}])
def test_keys_off_the_curve_are_left_out(issuer: Issuer, change: dict[str, object]) -> None:
    with pytest.raises(KeySetError):
        parse_keys(json.dumps({"keys": [{**issuer.key, **change}]}).encode())
