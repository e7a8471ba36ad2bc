"""Nodes of two releases in one cluster, as while it is rolled, and feature levels that move meanwhile.

Each process is of one of two releases, which its start draws: a node may be of the former one, of the present one, and
of the former one again. A process of the former release offers the versions of requests that Apache Kafka 4.0 has, asks
in these, refuses newer ones, and supports the levels of features of that time. So what nodes ask of each other
(WriteTxnMarkers, BrokerHeartbeat, Fetch and others) goes in versions that both know. The cluster begins with the
`metadata.version` of the former release, and its levels stay within what that supports.

| rule | broken where |
|---|---|
| SpeaksWhatIsOffered | a process is asked in a newer version than it has offered; what a broker passes on may be in a |
|                     | version that the controller before has offered, and its client connects again |
| OffersWhatIsDecided | a broker that is connected to the active controller offers a newer version than that serves of |
|                     | what it decides |
| RecordsAreOfTheLevel | a coordinator writes a record of a transactional id in another form than that of the level of |
|                      | `transaction.version` in its image (`settled_ids`) |

Behind these stand the rules of the workloads: what producers have heard holds, whichever release coordinates, leads or
follows, and whichever level of `transaction.version` a transaction began with.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from random import Random
from types import MappingProxyType
from typing import Any, Final
from weakref import WeakKeyDictionary

from kavka_broker.api import a18_api_versions
from kavka_broker.controller import format as formatting
from kavka_broker.controller import metadata_recovery
from kavka_broker.core.metadata.decide import features as decisions
from kavka_broker.core.metadata.image import features
from kavka_broker.core.metadata.image.features import INITIAL_LEVELS, METADATA_VERSION, SUPPORTED_LEVELS
from kavka_broker.dispatch.dispatcher import Dispatcher
from kavka_broker.net.outbound import Link
from kavka_broker.protocol.message import Message
from kavka_broker.request.registry import APIS, Api
from kavka_broker.runtime import server, wiring
from tests.sim.loop import PROCESS

API_VERSIONS: Final = 18
#: A module or class, a name in it, and what stands there while a simulation runs.
Patched = tuple[Any, str, Any]
#: Whether a request came to a controller in an envelope.
PASSED_ON: Final[ContextVar[bool]] = ContextVar("PASSED_ON", default=False)
FORMER_SHARE: Final = 0.5  # of the starts

FORMER_VERSIONS: Final[Mapping[int, int]] = MappingProxyType(
    {
        0: 12,  # Produce: names of topics, no ids
        1: 17,  # Fetch
        2: 10,  # ListOffsets
        8: 9,  # OffsetCommit
        9: 9,  # OffsetFetch
        22: 5,  # InitProducerId
        27: 1,  # WriteTxnMarkers: without the producer's transaction version
        45: 0,  # AlterPartitionReassignments: always with as many replicas as before, or not
        63: 1,  # BrokerHeartbeat: without cordoned directories
        80: 0,  # AddRaftVoter: answered once it is committed
    }
)
"""The newest versions of Apache Kafka 4.0, by API key, where there are newer ones now."""

FORMER_METADATA_VERSION: Final = 25  # 4.0-IV3
FORMER_LEVELS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {**SUPPORTED_LEVELS, METADATA_VERSION: (SUPPORTED_LEVELS[METADATA_VERSION][0], FORMER_METADATA_VERSION)}
)


class Levels(Mapping[str, tuple[int, int]]):
    """The levels that the present process supports."""

    def __init__(self, releases: "Releases") -> None:
        self._releases = releases

    def _levels(self) -> Mapping[str, tuple[int, int]]:
        return FORMER_LEVELS if self._releases.is_former else SUPPORTED_LEVELS

    def __getitem__(self, name: str) -> tuple[int, int]:
        return self._levels()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._levels())

    def __len__(self) -> int:
        return len(self._levels())


class Releases:
    """The release of each process of a simulation."""

    def __init__(self, simulation: Any) -> None:
        self._simulation = simulation
        self._random = Random(f"releases {simulation.seed}")
        self._former: dict[str, None] = {}  # processes, by name
        self._greeted: WeakKeyDictionary[Link, str] = WeakKeyDictionary()  # processes that have answered, by connection

    def began(self, node: Any) -> None:
        """Draw the release of a process before anything of it runs."""
        name = node.process.name
        if self._random.random() < FORMER_SHARE:
            self._former[name] = None
        release = "former" if name in self._former else "present"
        self._simulation.events.counts[f"played.{release}_release"] += 1
        self._simulation.events.say(name, f"is of the {release} release")

    @property
    def is_former(self) -> bool:
        """Whether the process that runs now is of the former release."""
        process = PROCESS.get()
        return process is not None and process.name in self._former

    def newest(self, key: int, version: int) -> int:
        """The newest version of an API that the present process knows, up to this one."""
        process = PROCESS.get()
        return version if process is None else self.newest_of(process.name, key, version)

    def newest_of(self, process: str, key: int, version: int) -> int:
        """The newest version of an API that a process knows, up to this one."""
        return min(version, FORMER_VERSIONS.get(key, version)) if process in self._former else version

    def check_offer(self, offer: Mapping[int, tuple[int, int]], broker: Any) -> None:
        """Check what a broker offers to a client against the controller that its connection leads to."""
        channel = broker.channel
        link = getattr(channel.peer, "link", None)
        controller = None if link is None or link.is_lost else self._greeted.get(link)
        if controller is None or broker.leads or broker.quorum.leader_endpoint() != channel.endpoint:
            return
        for key, (_, high) in offer.items():
            newest = self.newest_of(controller, key, high)
            if APIS[key].forwarded and high > newest:
                offered = f"{PROCESS.get()} offers {APIS[key].name} v{high}"
                self._simulation.fail(f"OffersWhatIsDecided: {offered}, {controller} serves v{newest}")

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Have each process speak as its release does, and a new cluster begin with the former one's level."""
        patched = [*self._levels(), *self._versions(), *self._offers()]
        before = [(target, name, target.__dict__[name]) for target, name, _ in patched]
        for target, name, value in patched:
            setattr(target, name, value)
        try:
            yield
        finally:
            for target, name, value in before:
                setattr(target, name, value)

    def _levels(self) -> Iterator[Patched]:
        """What processes say and read of levels."""
        levels = Levels(self)
        yield formatting, "INITIAL_LEVELS", {**INITIAL_LEVELS, METADATA_VERSION: FORMER_METADATA_VERSION}
        yield a18_api_versions, "SUPPORTED_FEATURES", levels
        for module in MODULES:
            yield module, "SUPPORTED_LEVELS", levels

    def _versions(self) -> Iterator[Patched]:
        """The versions in which processes ask and answer, and the rule for these."""
        advertised, version_of, supports = a18_api_versions.advertised, Link.version_of, Api.supports

        def advertised_by(key: int, broker: Any) -> tuple[int, int]:
            low, high = advertised(key, broker)
            return low, self.newest(key, high)

        def version_asked(link: Link, request: Message) -> int:
            assert request.API_KEY is not None
            return self.newest(request.API_KEY, version_of(link, request))

        def supports_by(api: Api, version: int) -> bool:
            is_known = version <= self.newest(api.key, version)
            if not is_known and PASSED_ON.get():
                self._simulation.events.counts["played.version_of_another_controller"] += 1
            elif not is_known and api.key != API_VERSIONS:
                self._simulation.fail(
                    f"SpeaksWhatIsOffered: {PROCESS.get()} is asked {api.name} v{version}, and offers"
                    f" v{self.newest(api.key, version)}"
                )
            return is_known and supports(api, version)

        yield a18_api_versions, "advertised", advertised_by
        yield Link, "version_of", version_asked
        yield Api, "supports", supports_by

    def _offers(self) -> Iterator[Patched]:
        """What the rule for offers looks at: which process a connection leads to, and what is passed on."""
        ranges, greet, serve_enveloped = a18_api_versions.ranges, Link.greet, Dispatcher.serve_enveloped

        def ranges_of(broker: Any, client: Any) -> Iterator[tuple[int, tuple[int, int]]]:
            offer = dict(ranges(broker, client))
            if client.role == "broker":
                self.check_offer(offer, broker)
            return iter(offer.items())

        async def greet_known(link: Link) -> None:
            await greet(link)
            processes = {node.host: node.process.name for node in self._simulation.nodes}
            self._greeted[link] = processes[link.name.partition(":")[0]]

        async def serve_passed_on(dispatcher: Dispatcher, frame: memoryview, peer: Any) -> Any:
            token = PASSED_ON.set(True)
            try:
                return await serve_enveloped(dispatcher, frame, peer)
            finally:
                PASSED_ON.reset(token)

        yield a18_api_versions, "ranges", ranges_of
        yield Link, "greet", greet_known
        yield Dispatcher, "serve_enveloped", serve_passed_on


MODULES: Final = (features, decisions, metadata_recovery, server, wiring)
"""The modules that look at the supported levels."""
