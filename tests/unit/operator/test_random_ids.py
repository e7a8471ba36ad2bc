"""One cluster id in 64 begins with a hyphen, which a command line takes for an option."""

from kavka_broker.cli import parser
from kavka_operator.platform.random_ids import draw_id


def test_no_drawn_id_looks_like_an_option() -> None:
    assert not any(draw_id().startswith("-") for _ in range(2_000))


def test_the_broker_takes_such_an_id_all_the_same() -> None:
    options = parser().parse_args(["format", "--config", "f", "--cluster-id=-2F2a2EtaW4tcHJvY2Vzcw"])
    assert options.cluster_id == "-2F2a2EtaW4tcHJvY2Vzcw"
