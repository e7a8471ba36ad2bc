"""One group, its clients, its timers and its log, without a broker: what scenarios and properties are played on.

Clients have one-letter names; a client knows its member id and generation from the answers it got, as real ones do.
Time moves only by `advance`. The log holds what was persisted; the disk can be told to hold writes back or to fail.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from kavka_broker.core.group import membership
from kavka_broker.core.group.effects import Effects, Persist, Respond, Start, Stop, TimerName
from kavka_broker.core.group.join import Join, join
from kavka_broker.core.group.offsets import check_committer
from kavka_broker.core.group.persistence import restore
from kavka_broker.core.group.settings import GroupSettings
from kavka_broker.core.group.state import ClassicGroup
from kavka_broker.core.group.sync import Sync, persisted, sync
from kavka_broker.protocol.errors import BrokerError, ErrorCode
from kavka_broker.protocol.messages.group.group_metadata_value import GroupMetadataValue
from kavka_broker.protocol.messages.join_group_response import JoinGroupResponse
from kavka_broker.protocol.messages.sync_group_response import SyncGroupResponse


@dataclass(slots=True)
class Client:
    """What a consumer knows of itself."""

    name: str
    member_id: str = ""
    generation: int = -1
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that waits; the token of the group."""

    number: int
    client: str
    kind: str


class World:
    """A group and everything around it."""

    def __init__(self, settings: GroupSettings | None = None) -> None:
        self.settings = settings or GroupSettings()
        self.group = ClassicGroup("g")
        self.now_ms = 0
        self.clients: dict[str, Client] = {}
        self.log: list[GroupMetadataValue] = []
        self.has_lost_write = False  # the newest write failed, so the log is behind until the next
        self.timers: dict[TimerName, int] = {}
        self.disk = "works"
        self.held: list[Persist] = []
        self.answers: list[tuple[Request, Any]] = []
        self.generations_asked: list[int] = []  # of its client, for each answer
        self.waiting: dict[Request, None] = {}
        self._requests = 0
        self._ids = 0

    # --- what a scenario can do -----------------------------------------------------------------------------------

    def join(self, name: str, **options: str) -> None:
        client = self.clients.setdefault(name, Client(name))
        client.options.update(options)
        if "id" in options:
            client.member_id = self.member_id(client.options.pop("id"))
        if "fresh" in client.options:
            del client.options["fresh"]
            client.member_id = ""
        effects = Effects()
        join(self.group, self._join_command(client), self.settings, self.now_ms, effects)
        self.run(effects)

    def _join_command(self, client: Client) -> Join:
        options = client.options
        version = int(options.get("v", "3"))
        self._ids += 1
        return Join(
            token=self._request(client.name, "join"),
            member_id=client.member_id,
            instance_id=options.get("instance"),
            client_id=client.name,
            client_host="/127.0.0.1",
            session_timeout_ms=milliseconds(options.get("session", "10s")),
            rebalance_timeout_ms=milliseconds(options.get("rebalance", "60s")),
            protocol_type=options.get("type", "consumer"),
            protocols=protocols_of(options.get("protocols", "range")),
            new_member_id=f"{client.name}-{self._ids}",
            needs_known_id=version >= 4,
            can_skip_assignment=version >= 9,
        )

    def sync(self, name: str, assignments: dict[str, str], **options: str) -> None:
        client = self.clients[name]
        effects = Effects()
        command = Sync(
            token=self._request(name, "sync"),
            generation=int(options.get("generation", client.generation)),
            member_id=client.member_id,
            instance_id=client.options.get("instance"),
            protocol_type=options.get("type"),
            protocol_name=options.get("protocol"),
            assignments={self.member_id(who): share.encode() for who, share in assignments.items()},
        )
        sync(self.group, command, self.now_ms, effects)
        self.run(effects)

    def heartbeat(self, name: str, **options: str) -> ErrorCode:
        client = self.clients[name]
        effects = Effects()
        generation = int(options.get("generation", client.generation))
        instance_id = client.options.get("instance")
        error = membership.heartbeat(self.group, generation, client.member_id, instance_id, effects)
        self.run(effects)
        return error

    def leave(self, member_id: str, instance_id: str | None = None) -> ErrorCode:
        effects = Effects()
        departure = membership.Departure(member_id, instance_id)
        error = membership.leave(self.group, departure, self.settings, self.now_ms, effects)
        self.run(effects)
        return error

    def commit(self, member_id: str, generation: int, instance_id: str | None = None) -> ErrorCode:
        try:
            check_committer(self.group, generation, member_id, instance_id)
        except BrokerError as error:
            return error.code
        return ErrorCode.NONE

    def advance(self, by_ms: int) -> None:
        """Let time pass; timers that end meanwhile fire in their order, each at its time."""
        end_ms = self.now_ms + by_ms
        while self.timers:
            timer = min(self.timers, key=lambda name: self.timers[name])
            if self.timers[timer] > end_ms:
                break
            self.now_ms = self.timers.pop(timer)
            effects = Effects()
            membership.expired(self.group, timer, self.settings, self.now_ms, effects)
            self.run(effects)
        self.now_ms = end_ms

    def set_disk(self, disk: str) -> None:
        """`works`, `fails` or `holds` writes; leaving `holds` lets the held ones go on."""
        self.disk = disk
        held, self.held = ([], self.held) if disk == "holds" else (self.held, [])
        effects = Effects()
        for write in held:
            self._write(write, effects)
        self.run(effects)

    def restart(self) -> None:
        """The broker is gone with all requests that wait there; another reads the log."""
        self.timers.clear()
        self.held.clear()
        self.waiting.clear()
        self.has_lost_write = False
        self.group = restore("g", self.log[-1]) if self.log else ClassicGroup("g")
        effects = Effects()
        membership.start_sessions(self.group.members.values(), effects)
        self.run(effects)

    def bury(self) -> None:
        effects = Effects()
        membership.bury(self.group, ErrorCode.NOT_COORDINATOR, self.now_ms, effects)
        self.run(effects)

    def change_settings(self, **changes: Any) -> None:
        self.settings = replace(self.settings, **changes)

    # --- effects ------------------------------------------------------------------------------------------------------

    def run(self, effects: Effects) -> None:
        for effect in effects:
            match effect:
                case Respond(token, response):
                    self._answered(token, response)
                case Start(timer, delay_ms):
                    self.timers[timer] = self.now_ms + delay_ms
                case Stop(timer):
                    self.timers.pop(timer, None)
                case Persist():
                    if self.disk == "holds":
                        self.held.append(effect)
                    else:
                        self._write(effect, effects)

    def _write(self, write: Persist, effects: Effects) -> None:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE if self.disk == "fails" else ErrorCode.NONE
        self.has_lost_write = error is not ErrorCode.NONE
        if not self.has_lost_write:
            self.log.append(write.value)
        persisted(self.group, write.ticket, error, self.settings, self.now_ms, effects)

    def _request(self, name: str, kind: str) -> Request:
        self._requests += 1
        request = Request(self._requests, name, kind)
        self.waiting[request] = None
        return request

    def _answered(self, token: object, response: object) -> None:
        assert isinstance(token, Request)
        assert token in self.waiting, f"{token} is answered twice"
        del self.waiting[token]
        client = self.clients[token.client]
        self.answers.append((token, response))
        self.generations_asked.append(client.generation)
        match response:
            case JoinGroupResponse(error_code=ErrorCode.NONE):
                client.member_id, client.generation = response.member_id, response.generation_id
            case JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED):
                client.member_id = response.member_id
            case JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID):
                client.member_id = ""
            case SyncGroupResponse() | JoinGroupResponse():
                pass

    # --- names --------------------------------------------------------------------------------------------------------

    def member_id(self, text: str) -> str:
        """A client's name stands for its member id."""
        client = self.clients.get(text)
        return text if client is None else client.member_id

    def name(self, member_id: str) -> str:
        return member_id.partition("-")[0]


def milliseconds(text: str) -> int:
    if text.endswith("ms"):
        return int(text[:-2])
    assert text.endswith("s"), f"{text}: write 10s or 100ms"
    return round(float(text[:-1]) * 1000)


def protocols_of(text: str) -> tuple[tuple[str, bytes], ...]:
    """`range:m1,sticky:m2`: names with metadata, the preferred first."""
    pairs = [part.partition(":") for part in text.split(",") if part]
    return tuple((name, metadata.encode()) for name, _, metadata in pairs)
