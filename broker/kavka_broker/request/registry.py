"""The table of API keys: the versions that Kavka answers, and the handler of each.

A handler registers itself with `@api`; `dispatch/handlers.py` imports every `api/aNN_*.py`. Nothing is advertised that
is not registered: ApiVersions and COMPAT.md are both made from this table, so what clients are told and what is
documented cannot drift from what is implemented.

A handler is a plain function where it never waits (the hot paths), or one that gives an awaitable; `Postponed` is one
that costs no task:

    @api(HeartbeatRequest, HeartbeatResponse, versions=(0, 4))
    def heartbeat(request: HeartbeatRequest, broker: Broker, client: Client) -> HeartbeatResponse: ...

The answer `None` means that nothing is sent (Produce with acks=0).

Brokers and controllers listen apart, and each kind of listener serves its own APIs (`on`, as Kafka's schemas say). What
only the active controller can decide is `forwarded`: a broker that is asked passes it on, and the handler runs there.
"""

from asyncio import Future
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeVar

from kavka_broker.protocol.message import Message
from kavka_broker.request.split_requests import Each

LARGE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Copying a request of this size may take ten milliseconds."""
FORWARDED_BYTES_MAX: Final = 4 * 1024 * 1024
"""The bound on forwarded requests, which are copied several times on their way to the controller."""
SMALL_BYTES_MAX: Final = 16 * 1024
"""The bound on requests that no client has a reason to make longer."""
NAMES_BYTES_MAX: Final = 128 * 1024
"""The bound on requests that name an id and a group: each may have 32,767 bytes."""
FETCH: Final = 1
FETCH_BYTES_MAX: Final = 1024 * 1024
"""The bound on a Fetch: some thirty thousand partitions."""


Answer = Message | None


@dataclass(frozen=True, slots=True)
class Postponed:
    """An answer that is made when `until` is done, in the same turn of the loop."""

    until: Future[None]
    make: Callable[[], Answer]

    def __await__(self) -> Generator[Any, None, Any]:
        yield from self.until
        return self.make()


Handler = Callable[..., Answer | Awaitable[Answer]]
#: Gives the answer of a broker that does not pass a request on, or None.
Refuses = Callable[[Any, Any, Any], Message | Awaitable[Message | None] | None]
H = TypeVar("H", bound=Callable[..., Any])
Role = Literal["broker", "controller"]

BROKER: tuple[Role, ...] = ("broker",)
CONTROLLER: tuple[Role, ...] = ("controller",)
BOTH: tuple[Role, ...] = ("broker", "controller")


@dataclass(frozen=True, slots=True)
class Api:
    """An API key. `versions` are answered, `advertised` are those in ApiVersions (KAFKA-18659 parts them)."""

    key: int
    name: str
    request: type[Message]
    response: type[Message]
    versions: tuple[int, int]
    advertised: tuple[int, int]
    handle: Handler
    pipelined: bool
    on: tuple[Role, ...] = BROKER
    forwarded: bool = False
    each: tuple[Each, ...] = ()
    bytes_max: int = LARGE_BYTES_MAX
    refuses: Refuses | None = None
    is_local: Callable[[Any], bool] | None = None
    unstable: int | None = None
    once: tuple[tuple[str, ...], ...] = ()  # the paths of elements that are handled once
    lists: Callable[[Any], bool] | None = None  # see `listing`

    @property
    def is_counting(self) -> bool:
        """Whether the handler itself marks its answer as long: Produce and Fetch do, to save a count."""
        return self.pipelined or self.key == FETCH

    @property
    def is_decision(self) -> bool:
        """Whether the active controller decides, and commits the records before the answer leaves."""
        return self.forwarded or self.on == CONTROLLER

    def supports(self, version: int) -> bool:
        low, high = self.versions
        return low <= version <= high

    def with_unstable(self) -> "Api":
        """The API with the version that is not stable yet, if it has one."""
        if self.unstable is None:
            return self
        return replace(self, versions=(self.versions[0], self.unstable), advertised=(self.advertised[0], self.unstable))


APIS: dict[int, Api] = {}
_LISTING: dict[Handler, Callable[[Any], bool]] = {}


def listing(handle: H) -> H:
    """Mark a handler, below `@api`, that tells of what there is: the answer to a short request may be long, and takes
    its turn in the memory for such (`answer_memory`).
    """
    return listing_where(lambda _: True)(handle)


def listing_where(is_wide: Callable[[Any], bool]) -> Callable[[H], H]:
    """Mark a handler as `listing` does, of which some requests have such answers."""

    def mark(handle: H) -> H:
        _LISTING[handle] = is_wide
        return handle

    return mark


def api(
    request: type[Message],
    response: type[Message],
    *,
    versions: tuple[int, int],
    advertised: tuple[int, int] | None = None,
    pipelined: bool = False,
    on: tuple[Role, ...] = BROKER,
    forwarded: bool = False,
    each: tuple[Each, ...] = (),
    bytes_max: int = LARGE_BYTES_MAX,
    refuses: Refuses | None = None,
    is_local: Callable[[Any], bool] | None = None,
    unstable: int | None = None,
) -> Callable[[H], H]:
    """Register a handler for the versions `low..high` (both included) of a request.

    `pipelined`: the next request of the connection may begin while this one's answer waits. Only Produce has it: its
    effect, the append, is over when the handler returns. Everything else runs one at a time, as in Apache Kafka.

    `on`: the listeners that serve it. `forwarded`: the active controller answers it, whichever broker is asked
    (KIP-590); the handler runs on controllers only, and decides there.

    `each`: where the elements of a request are, so that a request with many is handled in parts; where versions have
    different places, the first with elements counts. `bytes_max`: the largest request without records; a forwarded
    request may have at most `FORWARDED_BYTES_MAX`. `refuses`: what a broker says of a forwarded request by what it
    alone knows, as how its client is connected. `is_local`: which forwarded requests the node that is asked decides.

    `unstable`: the newest version, which is served where `unstable.api.versions.enable` is on.
    """

    def register(handle: H) -> H:
        key = request.API_KEY
        assert key is not None, f"{request.NAME} is not a request"
        assert key not in APIS, f"API key {key} is registered twice"
        low, high = versions
        valid_low, valid_high = request.VERSIONS
        assert valid_low <= low <= high <= valid_high, f"{request.NAME} {versions} is outside {request.VERSIONS}"
        name = request.NAME.removesuffix("Request")
        assert not forwarded or on == BOTH, f"{request.NAME} is passed on from brokers to controllers: both serve it"
        APIS[key] = Api(
            key,
            name,
            request,
            response,
            versions,
            advertised or versions,
            handle,
            pipelined,
            on,
            forwarded,
            each,
            min(bytes_max, FORWARDED_BYTES_MAX) if forwarded else bytes_max,
            refuses,
            is_local,
            unstable,
            tuple(elements.path for elements in each if elements.once),
            _LISTING.get(handle),
        )
        return handle

    return register
