"""Where nodes listen by their own settings: those with which a pod runs may be others than are wanted of it. Pure.

A port of a resource may change long before a node is restarted for it, and in a roll some nodes have the former port
and some the new one. So each node is asked where it listens, and Services and policies let both worlds in until the
last node is level.
"""

from collections.abc import Iterable, Mapping

from kavka_broker.core.config.properties import parse_properties
from kavka_operator.api.security import CONTROLLER
from kavka_operator.platform.kubernetes.objects.former_ports import Former, Ports
from kavka_operator.platform.kubernetes.objects.settings import Layout, advertised_in, controller_port
from kavka_operator.platform.kubernetes.observe.node_objects import Known, address_of, is_level, settings_of

AMONG_NODES = "inter.broker.listener.name"
METRICS = "kavka.admin.listener"


def ports_in(settings: str) -> Ports:
    """The ports in a text of server.properties."""
    found = parse_properties(settings)
    urls = [url.partition("://") for url in found.get("listeners", "").split(",")]
    ports = {name.strip(): port for name, _, at in urls if (port := _port_of(at)) is not None}
    clients = tuple((name, port) for name, port in ports.items() if name != CONTROLLER)
    among = ports.get(found.get(AMONG_NODES, "")) if clients else None
    return Ports(clients, ports.get(CONTROLLER), _port_of(found.get(METRICS, "")), among)


def _port_of(address: str) -> int | None:
    text = address.rpartition(":")[2].strip()
    return int(text) if text.isdecimal() else None


def former(known: Known, layouts: Mapping[int, Layout]) -> Former:
    """The ports of all nodes that were started with others than are wanted, or are not wanted at all."""
    behind = [
        number
        for number in sorted({*known.sets, *known.pods})
        if number not in layouts or not is_level(known, layouts[number])
    ]
    return Former(tuple(dict.fromkeys(ports_in(settings_of(known, number)) for number in behind)))


def controllers_elsewhere(known: Known, layouts: Mapping[int, Layout]) -> tuple[str, ...]:
    """The addresses of controllers that listen at another port than is wanted: a node that restarts looks there too."""
    found = [
        (layout, ports_in(settings_of(known, number)).controller)
        for number, layout in sorted(layouts.items())
        if layout.node.is_controller
    ]
    return tuple(
        f"{layout.host}:{port}"
        for layout, port in found
        if port is not None and port != controller_port(layout.cluster)
    )


def bootstrap(known: Known, layout: Layout) -> str:
    """The address at which the operator asks a broker: where it says itself that it listens for other nodes."""
    if layout.node.id not in known.sets and layout.node.id not in known.pods:
        return layout.bootstrap
    port = ports_in(settings_of(known, layout.node.id)).among_nodes
    return layout.bootstrap if port is None or is_level(known, layout) else f"{layout.host}:{port}"


def address(known: Known, layout: Layout) -> str:
    """The address at which clients reach a node now: as it tells it itself, until it is level."""
    if is_level(known, layout) or not (settings := settings_of(known, layout.node.id)):
        return layout.address
    told = advertised_in(settings)
    inside = next((listener.name for listener in layout.clients if listener.service is None), "")
    found = told.get(inside) or next(iter(told.values()), None)
    return layout.address if found is None else str(found)


def metrics_pages(known: Known, running: Iterable[int]) -> dict[int, str]:
    """The addresses of the metrics pages of running nodes, by the addresses of pods: those need no name."""
    found = {
        number: (address_of(known.pods[number]), ports_in(settings_of(known, number)).metrics) for number in running
    }
    return {number: f"{ip}:{port}" for number, (ip, port) in found.items() if ip and port is not None}
