"""ECDSA on the curve P-256 (FIPS 186-5, SP 800-186): whether the private half of a key has signed a digest.

Only public values come in, so that time may tell what it likes. Points are (X, Y, Z) with x = X/Z^2 and y = Y/Z^3,
which saves the division; Z = 0 is the point at infinity. Two scalars are worked off together, two bits of each at a
time.
"""

from typing import Final, NamedTuple

P: Final = 2**256 - 2**224 + 2**192 + 2**96 - 1
B: Final = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
COORDINATE_BYTES: Final = 32
WINDOW_BITS: Final = 2


class Point(NamedTuple):
    """A point of the curve, or a pair of numbers that claims to be one."""

    x: int
    y: int

    @property
    def is_on_curve(self) -> bool:
        x, y = self
        return 0 <= x < P and 0 <= y < P and (y * y - (x * x * x - 3 * x + B)) % P == 0


GENERATOR: Final = Point(
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
Jacobian = tuple[int, int, int]
INFINITY: Final[Jacobian] = (1, 1, 0)


def has_signed(key: Point, digest: bytes, signature: bytes) -> bool:
    """Whether a signature (r and s, of 32 bytes each) of a digest was made with the private half of a key that is on
    the curve.
    """
    assert key.is_on_curve, "the key was not checked"
    if len(signature) != 2 * COORDINATE_BYTES:
        return False
    r, s = (int.from_bytes(part, "big") for part in (signature[:COORDINATE_BYTES], signature[COORDINATE_BYTES:]))
    if not (0 < r < ORDER and 0 < s < ORDER):
        return False
    number, inverse = int.from_bytes(digest[:COORDINATE_BYTES], "big"), pow(s, -1, ORDER)
    x, _, z = _sum_of_products(number * inverse % ORDER, GENERATOR, r * inverse % ORDER, key)
    return z != 0 and x * pow(z, -2, P) % P % ORDER == r


def _sum_of_products(first: int, of_first: Point, second: int, of_second: Point) -> Jacobian:
    """Return first * of_first + second * of_second."""
    left, right = (_multiples((*point, 1)) for point in (of_first, of_second))
    table = [_added(first_part, second_part) for first_part in left for second_part in right]
    total = INFINITY
    for shift in range(256 - WINDOW_BITS, -1, -WINDOW_BITS):
        total = _doubled(_doubled(total))
        chosen = (first >> shift & 3) * 4 + (second >> shift & 3)
        if chosen:
            total = _added(total, table[chosen])
    return total


def _multiples(point: Jacobian) -> list[Jacobian]:
    """0 to 3 times a point."""
    twice = _doubled(point)
    return [INFINITY, point, twice, _added(twice, point)]


def _doubled(point: Jacobian) -> Jacobian:
    x, y, z = point
    if not y or not z:
        return INFINITY
    square, z_square = y * y % P, z * z % P
    s, m = 4 * x * square % P, 3 * (x - z_square) * (x + z_square) % P
    new = (m * m - 2 * s) % P
    return new, (m * (s - new) - 8 * square * square) % P, 2 * y * z % P


def _added(augend: Jacobian, addend: Jacobian) -> Jacobian:
    x1, y1, z1 = augend
    x2, y2, z2 = addend
    if not z1 or not z2:
        return addend if not z1 else augend
    square1, square2 = z1 * z1 % P, z2 * z2 % P
    u1, u2 = x1 * square2 % P, x2 * square1 % P
    s1, s2 = y1 * z2 * square2 % P, y2 * z1 * square1 % P
    h, r = (u2 - u1) % P, (s2 - s1) % P
    if not h:
        return _doubled(augend) if not r else INFINITY
    h_square = h * h % P
    h_cube, v = h * h_square % P, u1 * h_square % P
    new = (r * r - h_cube - 2 * v) % P
    return new, (r * (v - new) - s1 * h_cube) % P, h * z1 * z2 % P
