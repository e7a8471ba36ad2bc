"""Nodes of two releases in one cluster, as while it is rolled, and feature levels that move meanwhile.

Each process is of one of two releases, which its start draws: a node may be of the former one, of the present one, and
of the former one again. A process of the former release offers the versions of requests that Apache Kafka 4.0 has, asks
in these, refuses newer ones, and supports the levels of features of that time. So what nodes ask of each other
(WriteTxnMarkers, BrokerHeartbeat, Fetch and others) goes in versions that both know. The cluster begins with the
`metadata.version` of the former release, and its levels stay within what that supports.

| rule | broken where |
|---|---|
| SpeaksWhatIsOffered | a process is asked in a newer version than it has offered |
| RecordsAreOfTheLevel | a coordinator writes a record of a transactional id in another form than that of the level of |
|                      | `transaction.version` in its image (`settled_ids`) |

Behind these stand the rules of the workloads: what producers have heard holds, whichever release coordinates, leads or
follows, and whichever level of `transaction.version` a transaction began with.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from random import Random
from types import MappingProxyType
from typing import Any, Final

from kavka_broker.api import a18_api_versions
from kavka_broker.controller import format as formatting
from kavka_broker.controller import metadata_recovery
from kavka_broker.core.metadata.decide import features as decisions
from kavka_broker.core.metadata.image import features
from kavka_broker.core.metadata.image.features import INITIAL_LEVELS, METADATA_VERSION, SUPPORTED_LEVELS
from kavka_broker.net.outbound import Link
from kavka_broker.protocol.message import Message
from kavka_broker.request.registry import Api
from kavka_broker.runtime import server, wiring
from tests.sim.loop import PROCESS

API_VERSIONS: Final = 18
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
        63: 1,  # BrokerHeartbeat: without cordoned directories
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
        return min(version, FORMER_VERSIONS.get(key, version)) if self.is_former else version

    @contextmanager
    def speaking(self) -> Iterator[None]:
        """Have each process speak as its release does, and a new cluster begin with the former one's level."""
        advertised, version_of, supports = a18_api_versions.advertised, Link.version_of, Api.supports
        levels = Levels(self)

        def advertised_by(key: int, broker: Any) -> tuple[int, int]:
            low, high = advertised(key, broker)
            return low, self.newest(key, high)

        def version_asked(link: Link, request: Message) -> int:
            assert request.API_KEY is not None
            return self.newest(request.API_KEY, version_of(link, request))

        def supports_by(api: Api, version: int) -> bool:
            is_known = version <= self.newest(api.key, version)
            if not is_known and api.key != API_VERSIONS:
                self._simulation.fail(
                    f"SpeaksWhatIsOffered: {PROCESS.get()} is asked {api.name} v{version}, and offers"
                    f" v{self.newest(api.key, version)}"
                )
            return is_known and supports(api, version)

        patched: list[tuple[Any, str, Any]] = [
            (a18_api_versions, "advertised", advertised_by),
            (a18_api_versions, "SUPPORTED_FEATURES", levels),
            (Link, "version_of", version_asked),
            (Api, "supports", supports_by),
            (formatting, "INITIAL_LEVELS", {**INITIAL_LEVELS, METADATA_VERSION: FORMER_METADATA_VERSION}),
            *((module, "SUPPORTED_LEVELS", levels) for module in MODULES),
        ]
        before = [(target, name, target.__dict__[name]) for target, name, _ in patched]
        for target, name, value in patched:
            setattr(target, name, value)
        try:
            yield
        finally:
            for target, name, value in before:
                setattr(target, name, value)


MODULES: Final = (features, decisions, metadata_recovery, server, wiring)
"""The modules that look at the supported levels."""
