"""What a configuration says of connections, as those understand it who count them."""

import asyncio
import socket

import pytest

from kavka_broker.core.config.broker import BrokerConfig
from kavka_broker.core.quota.entity import DEFAULT, IpEntity
from kavka_broker.loop.timers import Timers
from kavka_broker.net.connection_quotas import ConnectionQuotas
from kavka_broker.runtime.clock import SystemClock
from kavka_broker.runtime.connection_limits import Bounding, bounds_of

PROPERTIES = {
    "node.id": "1",
    "process.roles": "broker",
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://:9092,OUTSIDE://:9094",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUTSIDE:PLAINTEXT,C:PLAINTEXT",
    "controller.listener.names": "C",
    "controller.quorum.bootstrap.servers": "a:9093",
}


def config(**more: str) -> BrokerConfig:
    return BrokerConfig.parse({**PROPERTIES, **{name.replace("_", "."): value for name, value in more.items()}})


def test_bounds_of_a_listener_stand_before_those_of_all() -> None:
    said = config(max_connections="7", listener_name_outside_max_connections="3")
    bounds = bounds_of(said, {})
    assert (bounds.of_listener("OUTSIDE"), bounds.of_listener("PLAINTEXT")) == (3, 7)
    altered = bounds_of(said.altered({"listener.name.outside.max.connections": "4", "max.connections": "9"}), {})
    assert (altered.of_listener("OUTSIDE"), altered.connections_max) == (4, 9)


def test_addresses_are_compared_as_the_kernel_writes_them() -> None:
    bounds = bounds_of(config(max_connections_per_ip_overrides="10.0.0.1:5, 2001:DB8:0:0::1:6,[::1]:7,a.b:8"), {})
    assert bounds.per_address == {"10.0.0.1": 5, "2001:db8::1": 6, "::1": 7}


def test_hosts_are_resolved_and_asked_for_again_where_they_could_not(caplog: pytest.LogCaptureFixture) -> None:
    answers: list[tuple[str, ...] | OSError] = [
        ("10.0.0.8", "fd00::8"),
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
    ]

    async def look_up(host: str) -> tuple[str, ...]:
        assert host == "backup.example.org"
        answer = answers.pop()
        if isinstance(answer, OSError):
            raise answer
        return answer

    async def scenario() -> None:
        loop, clock = asyncio.get_running_loop(), SystemClock()
        quotas = ConnectionQuotas()
        one = Bounding(quotas, Timers(clock, loop), look_up, ask_again_ms=1)
        one.follow(config(max_connections_per_ip_overrides="backup.example.org:2,10.0.0.1:3"))
        assert quotas.bounds.per_address == {"10.0.0.1": 3}
        async with asyncio.timeout(60):
            while len(quotas.bounds.per_address) < 3:
                await asyncio.sleep(0)
        assert quotas.bounds.per_address == {"10.0.0.8": 2, "fd00::8": 2, "10.0.0.1": 3}

    asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == ["host.unresolved"]


def test_a_name_that_cannot_be_one_does_not_keep_the_others_from_being_resolved(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def look_up(host: str) -> tuple[str, ...]:
        if host == "a..b":
            raise UnicodeError("label empty or too long")
        return ("10.0.0.8",)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        quotas = ConnectionQuotas()
        one = Bounding(quotas, Timers(SystemClock(), loop), look_up)
        one.follow(config(max_connections_per_ip_overrides="a..b:5,good:1"))
        async with asyncio.timeout(60):
            while not quotas.bounds.per_address:
                await asyncio.sleep(0)
        assert quotas.bounds.per_address == {"10.0.0.8": 1}

    asyncio.run(scenario())
    assert [record.getMessage() for record in caplog.records] == ["host.unresolved"]


def test_a_quota_of_a_host_is_of_its_addresses() -> None:
    """Apache Kafka takes names of hosts as well as addresses."""

    async def look_up(_: str) -> tuple[str, ...]:
        return "10.0.0.8", "10.0.0.9"

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        quotas = ConnectionQuotas()
        one = Bounding(quotas, Timers(SystemClock(), loop), look_up)
        one.limit_addresses({IpEntity("good"): 5.0, IpEntity("10.0.0.9"): 6.0, IpEntity(DEFAULT): 7.0}, {})
        assert quotas.rates.limit_of("10.0.0.8") == (IpEntity(DEFAULT), 7.0), "the name is not known yet"
        async with asyncio.timeout(60):
            while quotas.rates.limit_of("10.0.0.8") != (IpEntity("10.0.0.8"), 5.0):
                await asyncio.sleep(0)
        assert quotas.rates.limit_of("10.0.0.9") == (IpEntity("10.0.0.9"), 6.0), "the address itself wins"
        one.limit_addresses({IpEntity("good"): 9.0}, {})
        assert quotas.rates.limit_of("10.0.0.8") == (IpEntity("10.0.0.8"), 9.0), "known names are not asked for again"
        one.limit_addresses({}, {})
        assert quotas.rates.limit_of("10.0.0.8") is None

    asyncio.run(scenario())
