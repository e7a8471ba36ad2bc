"""Listeners that let anybody in, and what that means for quotas and rights."""

from collections.abc import Iterator

from kavka_operator.doctor.evidence import Broker, Examined, Finding, Severity, listed

LOOPBACK = ("127.", "localhost", "::1")
CLEAR = {"PLAINTEXT", "SASL_PLAINTEXT"}


def judged(seen: Examined) -> Iterator[Finding]:
    """The findings about who can connect."""
    told = [broker for broker in seen.brokers if "listeners" in broker.settings]
    clear = [f"{broker.id}: {listener}" for broker in told for listener in _reachable(broker, CLEAR)]
    if clear:
        what = "listeners without TLS can be reached from other machines: who listens on the way reads all"
        fix = "give them SSL or SASL_SSL in listener.security.protocol.map, or bind them to 127.0.0.1"
        yield Finding(Severity.WARNING, "clear-listener", what, f"broker {listed(clear)}", fix)
    every = CLEAR | {"SSL", "SASL_SSL"}
    free = [broker.id for broker in told if not broker.settings.get("authorizer.class.name")]
    open_ones = [broker.id for broker in told if broker.id in free and any(_reachable(broker, every))]
    if open_ones:
        what = "whoever can connect from another machine may do everything"
        evidence = f"no authorizer.class.name on brokers {listed(map(str, open_ones))}"
        fix = "set authorizer.class.name, or bind the listeners to 127.0.0.1"
        yield Finding(Severity.WARNING, "no-authorizer", what, evidence, fix)


def _reachable(broker: Broker, protocols: set[str]) -> Iterator[str]:
    """The listeners for clients that other machines can reach."""
    controllers = {name.strip() for name in broker.settings.get("controller.listener.names", "").split(",")}
    for listener in filter(None, broker.settings.get("listeners", "").split(",")):
        name, _, address = listener.strip().partition("://")
        host = address.rpartition(":")[0].strip("[]")
        if name not in controllers and protocol_of(broker, name) in protocols and not host.startswith(LOOPBACK):
            yield listener.strip()


def protocol_of(broker: Broker, name: str) -> str:
    """The security protocol of a listener: what the map says, otherwise its name."""
    pairs = broker.settings.get("listener.security.protocol.map", "").split(",")
    found = dict(pair.strip().partition(":")[::2] for pair in pairs)
    return found.get(name, name)


def nobody_has_a_name(seen: Examined) -> bool:
    """Whether every client is ANONYMOUS: all listeners are known, and none asks for a name."""
    told = [broker for broker in seen.brokers if "listeners" in broker.settings]
    protocols = {
        protocol_of(broker, listener.strip().partition("://")[0])
        for broker in told
        for listener in broker.settings["listeners"].split(",")
    }
    return len(told) == len(seen.brokers) > 0 and protocols == {"PLAINTEXT"}
