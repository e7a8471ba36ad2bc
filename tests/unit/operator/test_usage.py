"""Usage of quotas, from the metrics page to the status."""

from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_operator.api.kinds import key_of
from kavka_operator.api.quota import BrokerUsage, ClientQuotaStatus
from kavka_operator.domain.observed import SeenUsage
from kavka_operator.kafka.usage import fetch, usage_by_entity
from kavka_operator.loop.converge import converge
from kavka_operator.loop.observation import Observation
from tests.unit.operator.fakes import NOW, FakeKafka, quota

ETL = str(Entity(client_id="etl"))
USERS = str(Entity(DEFAULT))
LIMIT = "kavka_client_quota_limit_bytes_per_second"
PAGE = rf"""# TYPE {LIMIT} gauge
{LIMIT}{{user="",client_id="etl",quota_type="produce",level="7",source="client id \"etl\""}} 1000
{LIMIT}{{user="alice",client_id="",quota_type="fetch",level="6",source="default user"}} 500
{LIMIT}{{user="bob",client_id="",quota_type="fetch",level="6",source="default user"}} 500
# TYPE kafka_server_produce_byte_rate gauge
kafka_server_produce_byte_rate{{user="",client_id="etl"}} 1234.5
kafka_server_produce_byte_rate{{user="alice",client_id=""}} 99
# TYPE kafka_server_fetch_byte_rate gauge
kafka_server_fetch_byte_rate{{user="alice",client_id=""}} 100
kafka_server_fetch_byte_rate{{user="bob",client_id=""}} 400
# TYPE kavka_client_demand_bytes_per_second gauge
kavka_client_demand_bytes_per_second{{user="",client_id="etl",quota_type="produce"}} 99000
# TYPE kavka_quota_throttled_seconds_total counter
kavka_quota_throttled_seconds_total{{entity="client id \"etl\"",quota_type="produce"}} 12.4
kavka_quota_throttled_seconds_total{{entity="client id \"etl\"",quota_type="fetch"}} 0.5
kavka_quota_throttled_seconds_total{{entity="default user",quota_type="fetch"}} 0
"""


def test_usage_is_summed_up_by_the_entity_whose_limit_applies() -> None:
    assert usage_by_entity({0: PAGE}) == {
        ETL: (SeenUsage(0, 1234.5, 0.0, 12.9, 1.2345, producer_demand=99_000.0),),
        USERS: (SeenUsage(0, 0.0, 500.0, 0.0, 0.8),),
    }


def test_usage_has_an_item_for_each_broker() -> None:
    assert [line.broker for line in usage_by_entity({2: PAGE, 1: PAGE})[ETL]] == [1, 2]


def test_a_page_without_clients_and_a_broker_that_is_silent() -> None:
    assert usage_by_entity({0: "# TYPE up gauge\nup 1\n"}) == {}
    assert fetch("127.0.0.1:1") is None


def test_the_status_shows_rounded_usage() -> None:
    outcome = converge(Observation([quota()], NOW, usage_by_entity({0: PAGE})), FakeKafka())
    status = outcome.statuses[key_of(quota())]
    assert isinstance(status, ClientQuotaStatus)
    assert status.used == "123%"
    assert status.usage == (BrokerUsage(broker=0, producer_byte_rate=1200, consumer_byte_rate=0, throttled_seconds=12),)


OBSERVED_PAGE = """# TYPE kavka_quota_observed_limit gauge
kavka_quota_observed_limit{entity="client id \\"etl\\"",quota_type="produce"} 1000
# TYPE kavka_quota_observed_usage gauge
kavka_quota_observed_usage{entity="client id \\"etl\\"",quota_type="produce"} 1500
# TYPE kavka_quota_observed_throttled_seconds_total counter
kavka_quota_observed_throttled_seconds_total{entity="client id \\"etl\\"",quota_type="produce"} 7.5
"""


def test_an_observed_limit_has_its_usage_and_the_time_it_would_have_held() -> None:
    assert usage_by_entity({3: OBSERVED_PAGE}) == {ETL: (SeenUsage(3, 1500.0, 0.0, 0, 1.5, observed_seconds=7.5),)}
    outcome = converge(Observation([quota(mode="Observe")], NOW, usage_by_entity({3: OBSERVED_PAGE})), FakeKafka())
    status = outcome.statuses[key_of(quota())]
    assert isinstance(status, ClientQuotaStatus)
    assert status.used == "150%"
    assert status.usage[0].observed_seconds == 7


def test_the_usage_under_a_prefix_is_that_of_all_client_ids_that_begin_so() -> None:
    """Brokers name the beginning itself: a client may be called so."""
    wanted = quota(entity={"clientId": {"prefix": "etl"}})
    page = PAGE.replace('client id \\"etl', 'client id that begins with \\"etl').replace(
        'client_id="etl"', 'client_id="etl*"'
    )
    status = converge(Observation([wanted], NOW, usage_by_entity({0: page})), FakeKafka()).statuses[key_of(wanted)]
    assert isinstance(status, ClientQuotaStatus)
    assert (status.entity, status.used, len(status.usage)) == ("client-id=etl*", "123%", 1)


def test_a_limit_of_an_address_has_its_usage_and_the_time_it_holds_however_it_is_written() -> None:
    wanted = quota(entity={"ip": {"name": "2001:DB8:0::7"}}, limits={"connectionCreationRate": 4})
    labels = '{entity="address \\"2001:db8::7\\"",quota_type="connection_creation"}'
    figures = {"limit": 4, "usage": 3, "throttled_seconds_total": 2.5}
    kinds = {name: "counter" if name.endswith("_total") else "gauge" for name in figures}
    page = "".join(
        f"# TYPE kavka_quota_{name} {kinds[name]}\nkavka_quota_{name}{labels} {value}\n"
        for name, value in figures.items()
    )
    status = converge(Observation([wanted], NOW, usage_by_entity({0: page})), FakeKafka()).statuses[key_of(wanted)]
    assert isinstance(status, ClientQuotaStatus)
    assert (status.used, status.usage[0].throttled_seconds) == ("75%", 2)
