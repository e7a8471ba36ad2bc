from kavka_broker.runtime.health import STARTING, Health


def test_a_broker_is_ready_when_nothing_stands_in_its_way() -> None:
    health = Health(STARTING)
    ready_at_first = health.is_ready

    health.blocked("logs", "3 of 10 logs loaded")
    assert health.obstacles["logs"] == "3 of 10 logs loaded"
    for name in STARTING:
        health.cleared(name)

    assert (ready_at_first, health.is_ready) == (False, True)
    assert health.obstacles == {}


def test_an_obstacle_may_come_back() -> None:
    health = Health()

    health.blocked("stopping", "SIGTERM")

    assert not health.is_ready


def test_the_names_at_start_are_not_shared_between_brokers() -> None:
    Health(STARTING).cleared("logs")

    assert "logs" in Health(STARTING).obstacles
