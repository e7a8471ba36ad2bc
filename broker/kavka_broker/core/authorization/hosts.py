"""The hosts of access rules: an address, every address, or a network in CIDR notation (KIP-1276).

Addresses are compared in one form, since an IPv6 address can be written in many, and since a client of IPv4 may show
as an address of IPv6.
"""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

ADDRESSES_KEPT_MAX: Final = 4096


class Numbered(NamedTuple):
    """An address as a number of `bits` bits, or the first address of a network with `prefix` common bits."""

    bits: int
    prefix: int
    number: int


@lru_cache(maxsize=ADDRESSES_KEPT_MAX)
def plain_address(text: str) -> str:
    """Return an address in its only form; other text as it is."""
    number = parsed(text)
    if number is None:
        return text
    return str(
        IPv4Address(number.number) if number.bits == IPv4Address(0).max_prefixlen else IPv6Address(number.number)
    )


@lru_cache(maxsize=ADDRESSES_KEPT_MAX)
def parsed(text: str) -> Numbered | None:
    """Return an address as a number; None where the text is none."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return Numbered(address.max_prefixlen, address.max_prefixlen, int(address))


def network(text: str) -> Numbered | None:
    """Return a network in CIDR notation; None where the text is none."""
    if "/" not in text:
        return None
    try:
        found: IPv4Network | IPv6Network = ip_network(text, strict=False)
    except ValueError:
        return None
    return Numbered(found.max_prefixlen, found.prefixlen, int(found.network_address))
