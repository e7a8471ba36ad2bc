"""Collects what the rules ask for in one call, in the order in which it is to be done (see `effects`)."""

from kavka_broker.core.raft.effects import Effect, Flush, Later, NodeAddress, Note, Persist, Respond, Send
from kavka_broker.core.raft.quorum_state import QuorumState
from kavka_broker.protocol.message import Message


class EffectQueue:
    """The effects of the call that runs."""

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._laters = 0

    def drain(self) -> list[Effect]:
        """Return the effects of the call that ends, and begin with none."""
        effects, self._effects = self._effects, []
        return effects

    def emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    def persist(self, state: QuorumState) -> None:
        """Write the state once where nothing stands between two: the later one says all."""
        if self._effects and isinstance(self._effects[-1], Persist):
            self._effects.pop()
        self.emit(Persist(state))

    def send(self, peer: NodeAddress | None, request: Message) -> Send | None:
        """Ask a peer. Returns None where its address is unknown."""
        if peer is None:
            return None
        send = Send(peer, request)
        self.emit(send)
        return send

    def flush(self) -> None:
        self.emit(Flush())

    def later(self) -> Later:
        """Make the mark of a request that is answered by a later call."""
        self._laters += 1
        return Later(self._laters)

    def answer(self, later: Later | None, response: Message) -> None:
        if later is not None:
            self.emit(Respond(later, response))

    def note(self, event: str, **fields: object) -> None:
        self.emit(Note(event, fields))

    def warn(self, event: str, **fields: object) -> None:
        self.emit(Note(event, fields, is_warning=True))
