"""Defects of the room and the places that long requests and answers have."""

from kavka_broker.dispatch.dispatcher import Exchange
from kavka_broker.request.answer_memory import Making
from kavka_broker.request.decoded_requests import DecodedRequests, Room
from tests.sim.teething import Patch, tooth


@tooth("a client that leaves keeps the place of its answer", "reset", 5, workloads="long_requests")
def places_that_are_kept(patch: Patch) -> None:
    def forget(self: Exchange) -> None:
        self.client.end_room()
        self.waiting = self.make = None

    patch.setattr(Exchange, "forget", forget)


@tooth("a request that is given up before it is read keeps its room", "reset", 10, workloads="long_requests")
def room_that_is_kept(patch: Patch) -> None:
    end, settle, settled = Room.end, Room.settle, set[Room]()

    def settle_and_know(self: Room, size_bytes: int) -> None:
        settled.add(self)
        settle(self, size_bytes)

    def end_where_known(self: Room) -> None:
        if self in settled:
            end(self)

    patch.setattr(Room, "settle", settle_and_know)
    patch.setattr(Room, "end", end_where_known)


@tooth("room that is given back is given to none that waits", "reset", 5, workloads="long_requests")
def room_not_passed_on(patch: Patch) -> None:
    def give_back(self: DecodedRequests, size_bytes: int) -> None:
        self.used_bytes -= size_bytes

    patch.setattr(DecodedRequests, "give_back", give_back)


@tooth("the bytes of an answer count until the next one is made", "reset", 5, workloads="long_requests")
def bytes_that_are_kept(patch: Patch) -> None:
    def end(self: Making) -> None:
        if not self._is_made:
            self._leave()

    patch.setattr(Making, "end", end)


@tooth("a place is given back twice", "reset", 5, workloads="long_requests")
def places_given_back_twice(patch: Patch) -> None:
    leave = Making._leave

    def leave_again(self: Making) -> None:
        leave(self)
        self._memory.give_place()

    patch.setattr(Making, "_leave", leave_again)
