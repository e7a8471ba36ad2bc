"""Quotas as metadata: what may be set on whom, and what a filter finds (KIP-546)."""

import pytest

from kavka_broker.core.metadata.decide.quotas import Alteration, alter
from kavka_broker.core.metadata.image.quota_filter import Component, MatchType, matching
from kavka_broker.core.metadata.image.quotas import Quotas, parts_of
from kavka_broker.core.quota.entity import DEFAULT, Entity, IpEntity
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.metadata.client_quota_record import ClientQuotaRecord

Parts = list[tuple[str, str | None]]
EXACT, IS_DEFAULT, SPECIFIED = MatchType

ALICE: Parts = [("user", "alice")]
ALICE_APP: Parts = [("user", "alice"), ("client-id", "app")]
ANYBODY: Parts = [("user", None)]
ANY_APP: Parts = [("client-id", None)]
CALLED_DEFAULT: Parts = [("user", "<default>")]
ADDRESS: Parts = [("ip", "192.0.2.7")]


def set_limits(quotas: Quotas, parts: Parts, **limits: float | None) -> None:
    for record in alter(quotas, Alteration(parts, list(limits.items()))).records:
        assert isinstance(record, ClientQuotaRecord)
        quotas.replay(record)


def furnished() -> Quotas:
    quotas = Quotas()
    for number, parts in enumerate([ALICE, ALICE_APP, ANYBODY, ANY_APP, CALLED_DEFAULT], 1):
        set_limits(quotas, parts, producer_byte_rate=float(number))
    set_limits(quotas, ADDRESS, connection_creation_rate=10.0)
    return quotas


def test_a_limit_is_set_changed_and_removed() -> None:
    quotas = Quotas()
    set_limits(quotas, ALICE, producer_byte_rate=5.0)
    set_limits(quotas, ALICE, producer_byte_rate=6.0, request_percentage=200.0)
    assert quotas.of(Entity("alice")) == {"producer_byte_rate": 6.0, "request_percentage": 200.0}
    set_limits(quotas, ALICE, producer_byte_rate=None)
    assert quotas.limits == {"request_percentage": {Entity("alice"): 200.0}}


def test_a_user_called_default_is_not_the_default() -> None:
    quotas = furnished()
    assert quotas.of(Entity(DEFAULT)) == {"producer_byte_rate": 3.0}
    assert quotas.of(Entity("<default>")) == {"producer_byte_rate": 5.0}


def test_an_address_may_be_named_by_a_host_that_is_found_and_what_is_set_can_be_removed() -> None:
    quotas, named = Quotas(), Alteration([("ip", "a.example")], [("connection_creation_rate", 5.0)])
    with pytest.raises(BrokerError, match=r'"a\.example" is not a valid IP or resolvable host'):
        alter(quotas, named)
    for record in alter(quotas, named, {"a.example"}).records:
        assert isinstance(record, ClientQuotaRecord)
        quotas.replay(record)
    assert quotas.of(IpEntity("a.example")) == {"connection_creation_rate": 5.0}
    set_limits(quotas, [("ip", "a.example")], connection_creation_rate=None)
    assert not quotas.of(IpEntity("a.example"))


def test_what_says_the_same_writes_nothing() -> None:
    quotas = furnished()
    assert not alter(quotas, Alteration(ALICE, [("producer_byte_rate", 1.0)])).records
    assert not alter(quotas, Alteration([("user", "bob")], [("producer_byte_rate", None)])).records
    assert not alter(quotas, Alteration(ALICE, [("nope", None)])).records


@pytest.mark.parametrize(
    ("parts", "key", "limit"),
    [
        ([], "producer_byte_rate", 1.0),
        ([("team", "a")], "producer_byte_rate", 1.0),
        ([("user", "")], "producer_byte_rate", 1.0),
        ([("client-id", "")], "producer_byte_rate", 1.0),
        ([("user", "a"), ("user", "b")], "producer_byte_rate", 1.0),
        ([("user", "a"), ("ip", "192.0.2.7")], "connection_creation_rate", 1.0),
        ([("ip", "somewhere")], "connection_creation_rate", 1.0),
        (ADDRESS, "producer_byte_rate", 1.0),
        (ALICE, "connection_creation_rate", 1.0),
        (ALICE, "nope", 1.0),
        (ALICE, "producer_byte_rate", 0.0),
        (ALICE, "producer_byte_rate", -1.0),
        (ALICE, "producer_byte_rate", 1.5),
        (ALICE, "producer_byte_rate", 1e19),
        (ALICE, "request_percentage", float("nan")),
        (ADDRESS, "connection_creation_rate", 0.5),
    ],
)
def test_what_cannot_be_limited_is_an_invalid_request(parts: Parts, key: str, limit: float) -> None:
    with pytest.raises(BrokerError) as refusal:
        alter(Quotas(), Alteration(parts, [(key, limit)]))
    assert refusal.value.code is ErrorCode.INVALID_REQUEST
    assert refusal.value.message


def test_a_key_that_is_there_twice_is_refused() -> None:
    with pytest.raises(BrokerError, match="named twice"):
        alter(Quotas(), Alteration(ALICE, [("producer_byte_rate", 1.0), ("producer_byte_rate", 2.0)]))


def test_a_rate_tolerates_the_rounding_of_a_double() -> None:
    set_limits(Quotas(), ALICE, producer_byte_rate=100.0000001)


def found(*components: Component, strict: bool = False) -> list[Parts]:
    found = matching(furnished(), components, strict=strict)
    entities = dict.fromkeys(one[0] for one in found if one is not None)
    return [list(parts_of(entity).items()) for entity in entities]


@pytest.mark.parametrize(
    ("components", "strict", "entities"),
    [
        ([], False, [ADDRESS, ALICE, ALICE_APP, ANYBODY, ANY_APP, CALLED_DEFAULT]),
        ([], True, []),
        ([Component("user", EXACT, "alice")], False, [ALICE, ALICE_APP]),
        ([Component("user", EXACT, "alice")], True, [ALICE]),
        ([Component("user", IS_DEFAULT)], False, [ANYBODY]),
        ([Component("user", SPECIFIED)], False, [ALICE, ALICE_APP, ANYBODY, CALLED_DEFAULT]),
        ([Component("user", SPECIFIED)], True, [ALICE, ANYBODY, CALLED_DEFAULT]),
        ([Component("user", SPECIFIED), Component("client-id", EXACT, "app")], True, [ALICE_APP]),
        ([Component("client-id", IS_DEFAULT)], False, [ANY_APP]),
        ([Component("user", EXACT, "<default>")], False, [CALLED_DEFAULT]),
        ([Component("ip", SPECIFIED)], False, [ADDRESS]),
        ([Component("ip", IS_DEFAULT)], False, []),
    ],
)
def test_a_filter_finds_the_entities_that_match_it(
    components: list[Component], strict: bool, entities: list[Parts]
) -> None:
    assert found(*components, strict=strict) == entities


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([Component("", SPECIFIED)], ErrorCode.INVALID_REQUEST),
        ([Component("team", SPECIFIED)], ErrorCode.UNSUPPORTED_VERSION),
        ([Component("user", EXACT)], ErrorCode.INVALID_REQUEST),
        ([Component("user", IS_DEFAULT, "x")], ErrorCode.INVALID_REQUEST),
        ([Component("user", SPECIFIED, "x")], ErrorCode.INVALID_REQUEST),
        ([Component("user", 9)], ErrorCode.INVALID_REQUEST),
        ([Component("user", SPECIFIED), Component("user", EXACT, "a")], ErrorCode.INVALID_REQUEST),
        ([Component("user", SPECIFIED), Component("ip", SPECIFIED)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_filter_without_sense_is_refused(components: list[Component], code: ErrorCode) -> None:
    with pytest.raises(BrokerError) as refusal:
        found(*components)
    assert refusal.value.code is code


def test_an_address_and_its_default() -> None:
    quotas = Quotas()
    set_limits(quotas, [("ip", None)], connection_creation_rate=7.0)
    set_limits(quotas, [("ip", "2001:db8::7")], connection_creation_rate=8.0)
    assert quotas.limits["connection_creation_rate"] == {IpEntity(DEFAULT): 7.0, IpEntity("2001:db8::7"): 8.0}


@pytest.mark.parametrize(
    ("limit", "is_taken"),
    [
        (2.0**31 - 1, True),
        (2.0**31, False),
        (1.0, True),
        (0.0, False),
        (1.5, False),
        (1 + 1e-7, True),
        (1 + 1e-5, False),
    ],
)
def test_how_many_connections_an_address_may_make(limit: float, is_taken: bool) -> None:
    alteration = Alteration([("ip", "192.0.2.7")], [("connection_creation_rate", limit)])
    if is_taken:
        assert len(alter(Quotas(), alteration).records) == 1
    else:
        with pytest.raises(BrokerError):
            alter(Quotas(), alteration)
