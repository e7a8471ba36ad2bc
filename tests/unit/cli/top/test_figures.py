"""Figures of metrics pages: what they tell, and that silence is not 0."""

import pytest

from kavka_broker.runtime.metric_table import BY_NAME
from kavka_operator.kafka.broker_metrics import (
    CONNECTIONS,
    WANTED,
    ClientFigures,
    ClientKey,
    Page,
    QuotaFigures,
    ShareFigures,
    fetch_page,
    read_page,
    shares_of,
    url_of,
)

LIMIT = "kavka_client_quota_limit_bytes_per_second"
PAGE = rf"""# HELP kavka_broker_info Always 1.
# TYPE kavka_broker_info gauge
kavka_broker_info{{node_id="2",cluster_id="x"}} 1
# TYPE kavka_connections gauge
kavka_connections{{listener="PLAINTEXT"}} 5
kavka_connections{{listener="TLS"}} 2
kavka_client_bytes_total{{user="",client_id="etl",quota_type="produce"}} 4000
kavka_client_throttle_seconds_total{{user="",client_id="etl",quota_type="produce"}} 1.5
{LIMIT}{{user="",client_id="etl",quota_type="produce",level="7",source="client id \"etl\""}} 1000
kafka_server_produce_byte_rate{{user="",client_id="etl"}} 990
kafka_server_fetch_byte_rate{{user="bob",client_id="etl"}} 5
kafka_server_brokertopicmetrics_bytesin_total{{topic="orders"}} 70
kavka_client_quota_limit_loop_ratio{{user="bob",client_id="",level="3",source="user \"bob\""}} 0.25
kafka_server_request_request_time{{user="bob",client_id=""}} 12.5
kavka_quota_limit{{entity="client id \"etl\"",quota_type="produce"}} 1000
kavka_quota_usage{{entity="client id \"etl\"",quota_type="produce"}} 990
kavka_quota_shares{{entity="client id \"etl\"",quota_type="produce"}} 1
kavka_quota_throttled_seconds_total{{entity="client id \"etl\"",quota_type="produce"}} 1.25
kavka_share_group_oldest_record_seconds{{group="mails",topic="orders"}} 3.5
kavka_share_group_records_total{{group="mails",topic="orders",event="redelivered"}} 4
kavka_share_group_records_total{{group="mails",topic="orders",event="archived"}} 1
kavka_share_group_records_total{{group="mails",topic="orders",event="else"}} 9
kavka_something_else{{text="{{{{{{"}} NaN
"""


def test_a_page_tells_clients_quotas_topics_and_totals() -> None:
    page = read_page(PAGE)
    assert page.node == 2
    assert page.clients == {
        ClientKey("", "etl", "produce"): ClientFigures(990, 1000, 7, 'client id "etl"', 4000, 1.5),
        ClientKey("bob", "etl", "fetch"): ClientFigures(5.0),
        ClientKey("bob", "", "request"): ClientFigures(12.5, 25.0, 3, 'user "bob"'),
    }
    assert page.quotas == {('client id "etl"', "produce"): QuotaFigures(1000, 990, 1, 1.25)}
    assert (page.topics_in, page.topics_out) == ({"orders": 70}, {})
    assert page.totals == {CONNECTIONS: 7}
    assert page.shares == {("mails", "orders"): ShareFigures(3.5, 4, 1)}


def test_figures_of_a_share_group_add_up_over_brokers_and_what_none_tells_stays_unknown() -> None:
    one, other = (
        Page(1, shares={("g", "t"): ShareFigures(9.0, 1)}),
        Page(2, shares={("g", "t"): ShareFigures(4.0)}),
    )
    assert shares_of([one, other, Page(3)]) == {("g", "t"): ShareFigures(9.0, 1, None)}


def test_a_page_of_something_else_tells_nothing() -> None:
    page = read_page("# TYPE up gauge\nup 1\n<html>no metrics</html>\n")
    assert (page.node, page.clients, page.totals) == (None, {}, {})


def test_where_nobody_answers_there_is_no_page() -> None:
    assert fetch_page("http://127.0.0.1:1/metrics") is None


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("broker:9644", "http://broker:9644/metrics"),
        ("broker:9644/prometheus", "http://broker:9644/prometheus"),
        ("https://broker/metrics", "https://broker/metrics"),
    ],
)
def test_an_address_of_a_page(typed: str, url: str) -> None:
    assert url_of(typed) == url


@pytest.mark.parametrize("typed", ["", "file:///etc/passwd", "ftp://broker/metrics"])
def test_an_address_that_is_none(typed: str) -> None:
    with pytest.raises(ValueError, match=r"empty|neither"):
        url_of(typed)


def test_every_metric_that_is_read_is_one_that_brokers_serve() -> None:
    assert set(WANTED) <= set(BY_NAME)
