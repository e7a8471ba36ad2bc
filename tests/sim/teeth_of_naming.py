"""Defects of what fetch sessions remember of names, which the simulation has to find; `teething` says how."""

from typing import Any

from kavka_broker.protocol.messages.fetch_request import FetchRequest
from kavka_broker.replica.serving.fetch_sessions import FetchSession
from tests.sim.teething import Patch, tooth


@tooth("the names that a client adds to its fetch session are not counted", "kill", 5, workloads="named_sessions")
def added_names_uncounted(patch: Patch) -> None:
    def add(self: FetchSession, place: Any, asked: Any) -> Any:
        self.partitions[place] = asked
        return asked

    patch.setattr(FetchSession, "_add", add)


@tooth("the names that a client gives up count on", "kill", 5, workloads="named_sessions")
def names_never_given_back(patch: Patch) -> None:
    update = FetchSession.update

    def keep_counting(self: FetchSession, request: FetchRequest, prepared: Any = None) -> Any:
        given_up, request.forgotten_topics_data = request.forgotten_topics_data, []
        named, counted = update(self, request, prepared), self.names_bytes
        update(self, FetchRequest(forgotten_topics_data=given_up))
        self.names_bytes = counted
        return named

    patch.setattr(FetchSession, "update", keep_counting)
