"""Of two runs one may write, and one that has lost that right writes nothing any more."""

import json

import pytest

from kavka_audit.store.lease import KEY, LEASE_SECONDS, Lease
from kavka_audit.store.objects import StoreError
from tests.unit.analytics.stored import NAME, Connection, Died, Objects, Time, lease_of


class Away(Connection):
    """A store that does not answer for a while."""

    is_away = False

    def replace(self, key: str, data: bytes, tag: str) -> str | None:
        if self.is_away:
            raise StoreError("away")
        return super().replace(key, data, tag)


def died(objects: Objects) -> None:
    """A run that dies with the lease."""
    with pytest.raises(Died), lease_of(Connection(objects, 4)).held():
        raise Died


def test_the_lease_of_a_run_that_died_is_taken_when_it_is_over() -> None:
    objects, time = Objects(), Time()
    died(objects)
    assert json.loads(objects.kept[KEY])["held"]
    with lease_of(Connection(objects), time).held():
        assert LEASE_SECONDS <= time.now < LEASE_SECONDS * 1.5


def test_the_lease_of_a_run_that_ended_is_free_at_once() -> None:
    objects, time = Objects(), Time()
    for _ in range(3):
        with lease_of(Connection(objects), time).held():
            assert time.now == 0


@pytest.mark.parametrize("left", [1, 2, 3, 4])
def test_an_answer_that_is_lost_takes_nothing_from_the_run_that_asked_again(left: int) -> None:
    """The client asks again where an answer gets lost, and is told that another was first: itself."""
    objects = Objects()

    class Twice(Connection):
        def create(self, key: str, data: bytes) -> str | None:
            super().create(key, data)
            return super().create(key, data)

        def replace(self, key: str, data: bytes, tag: str) -> str | None:
            super().replace(key, data, tag)
            return super().replace(key, data, tag)

    time = Time()
    lease = lease_of(Twice(objects), time)
    with lease.held():
        for _ in range(left):
            time.now += LEASE_SECONDS / 3
            lease.check()
    assert not json.loads(objects.kept[KEY])["held"]


def test_a_run_that_stood_still_writes_nothing_any_more() -> None:
    objects, time = Objects(), Time()
    lease = lease_of(Connection(objects), time)
    with lease.held():
        lease.check()
        time.now += LEASE_SECONDS * 2
        with lease_of(Connection(objects), Time(), "there").held():
            with pytest.raises(StoreError, match=f"another run has taken {NAME}"):
                lease.check()
            taken = objects.kept[KEY]
            with pytest.raises(StoreError, match="another run has taken"):
                lease.check()
        assert json.loads(taken)["host"] == "there"
    assert json.loads(objects.kept[KEY])["host"] == "there", "what it does at its end takes nothing from the other"


def test_a_run_that_stood_still_and_that_nobody_has_waited_for_goes_on() -> None:
    objects, time = Objects(), Time()
    lease = lease_of(Connection(objects), time)
    with lease.held():
        time.now += LEASE_SECONDS * 2
        lease.check()


def test_a_lease_that_cannot_be_renewed_lets_nothing_be_written() -> None:
    store, time = Away(Objects()), Time()
    lease = lease_of(store, time)
    with lease.held():
        store.is_away = True
        time.now += LEASE_SECONDS / 8
        lease.check()
        time.now += LEASE_SECONDS / 4
        with pytest.raises(StoreError, match="away"):
            lease.check()
        store.is_away = False
        lease.check()


def test_of_two_that_wait_for_a_dead_run_one_gets_its_lease() -> None:
    objects, time = Objects(), Time()
    died(objects)
    first = lease_of(Connection(objects), time, "first")
    others: list[Lease] = []

    class Meeting(Connection):
        """The way of the second: as soon as it has read a lease that is over, the first takes it."""

        def replace(self, key: str, data: bytes, tag: str) -> str | None:
            if not others:
                others.append(first)
                assert super().replace(key, b'{"held": true, "host": "first"}', tag) is not None
            return super().replace(key, data, tag)

    with (
        pytest.raises(StoreError, match=r"another run holds .* \(on first\)"),
        lease_of(Meeting(objects), time).held(),
    ):
        pass


def test_a_store_that_minds_no_conditions_is_refused() -> None:
    store = Connection(Objects(is_conditional=False))
    words = "does not know the conditions If-None-Match and If-Match"
    with pytest.raises(StoreError, match=words), lease_of(store).held():
        pass


@pytest.mark.parametrize("found", [b"", b"[]", b"\xff", b"{"])
def test_an_object_that_is_no_lease_is_taken_after_a_while(found: bytes) -> None:
    time = Time()
    with lease_of(Connection(Objects({KEY: found})), time).held():
        assert time.now >= LEASE_SECONDS
