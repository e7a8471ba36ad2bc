"""Limits that fit: from what is observed to a file that `kavka apply` takes."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.quota.entity import DEFAULT, Entity
from kavka_cli.commands.quota.recommend import sampled
from kavka_cli.output import CommandError
from kavka_cli.suggested_quotas import How, file_of, resource
from kavka_operator.api.files import load
from kavka_operator.api.quota import AnyEntity, ClientQuota, entity_of
from kavka_operator.kafka.admin import AdminError
from kavka_operator.kafka.broker_metrics import ClientFigures, ClientKey, Page
from kavka_operator.kafka.prometheus import kept
from kavka_operator.quota.recommendation import (
    LIMIT_BYTES_MIN,
    Observed,
    Samples,
    entity_of_client,
    percentile,
    recommend,
    rounded,
)
from tests.unit.operator.person import run
from tests.unit.operator.test_local_pieces import FILE

MIB = 2**20
ETL = Entity(None, "etl")
PRODUCE = "producer_byte_rate"


def quota(name: str, user: str, mode: str, **spec: object) -> ClientQuota:
    """A resource that limits the requests of a user."""
    wanted = {"clusterRef": {"name": "main"}, "entity": {"user": {"name": user}}, "mode": mode, **spec}
    limits = {"limits": {"requestPercentage": 50}}
    return ClientQuota.decode({"metadata": {"name": name}, "spec": {**wanted, **limits}})


def samples(*rates: float, demand: float | None = None) -> Samples:
    found = Samples()
    for rate in rates:
        found.add(rate, demand)
    return found


def test_the_limit_is_the_95th_percentile_of_demand_at_the_busiest_broker_with_headroom() -> None:
    quiet = Observed("", "etl", "produce", "0")
    busy = Observed("", "etl", "produce", "1")
    rates = [float(number) * MIB for number in range(1, 101)]
    (found,) = recommend({quiet: samples(1.0 * MIB), busy: samples(*rates)}, {}, headroom=2.0)
    (fit,) = found.fits
    assert (found.entity, fit.key, fit.broker, fit.demand, fit.count) == (ETL, PRODUCE, "1", 95 * MIB, 100)
    assert fit.limit == 192 * MIB
    assert found.is_new


def test_a_throttled_client_has_the_demand_that_is_estimated_and_not_its_limit() -> None:
    who = Observed("", "etl", "produce", "0")
    (found,) = recommend({who: samples(1.0 * MIB, demand=4.0 * MIB)}, {ETL: {PRODUCE: 1.0 * MIB}}, headroom=1.0)
    (fit,) = found.fits
    assert (fit.limit, fit.rate, fit.now, found.is_new) == (4 * MIB, 1.0 * MIB, 1.0 * MIB, False)


def test_of_who_is_nearly_always_held_four_times_the_rate_is_believed() -> None:
    who = Observed("", "etl", "produce", "0")
    (found,) = recommend({who: samples(1.0 * MIB, demand=100.0 * MIB)}, {}, headroom=1.0)
    assert found.fits[0].limit == 4 * MIB


def test_limits_that_the_entity_has_besides_are_kept_and_moments_are_none() -> None:
    limits: dict[AnyEntity, dict[str, float]] = {ETL: {"request_percentage": 7.0, "kavka_override_until_ms": 1e12}}
    (found,) = recommend({Observed("", "etl", "fetch", "0"): samples(9.0)}, limits)
    assert (found.others, found.is_new) == ({"request_percentage": 7.0}, False)


@pytest.mark.parametrize(
    ("user", "client_id", "entity"),
    [
        ("", "etl", ETL),
        ("alice", "", Entity("alice", None)),
        ("alice", "etl", Entity("alice", "etl")),
        ("ANONYMOUS", "etl", ETL),
        ("ANONYMOUS", "", Entity("ANONYMOUS", None)),
        ("__other__", "", None),
        ("", "etl-*", None),
        ("", "", None),
    ],
)
def test_whom_a_limit_is_set_on(user: str, client_id: str, entity: Entity | None) -> None:
    assert entity_of_client(Observed(user, client_id, "produce", "0")) == entity


@pytest.mark.parametrize(
    ("other", "entity"),
    [
        (Entity("ANONYMOUS", "etl"), Entity("ANONYMOUS", "etl")),
        (Entity(DEFAULT, "etl"), Entity("ANONYMOUS", "etl")),
        (Entity(DEFAULT, None), Entity("ANONYMOUS", "etl")),
        (Entity("alice", "etl"), ETL),
        (ETL, ETL),
        (Entity(None, DEFAULT), ETL),
    ],
)
def test_what_is_recommended_would_hold(other: Entity, entity: Entity) -> None:
    """Limits of users win over those of client ids, where nobody says who they are too."""
    observed = {Observed("ANONYMOUS", "etl", "produce", "0"): samples(MIB)}
    assert [one.entity for one in recommend(observed, {ETL: {PRODUCE: 9.0}, other: {PRODUCE: 5.0}})] == [entity]


def test_who_used_nothing_gets_no_limit() -> None:
    assert recommend({Observed("", "etl", "produce", "0"): samples(0.0, 0.0)}, {}) == []


@given(st.lists(st.floats(0, 1e12), min_size=1, max_size=50), st.floats(0.1, 100))
def test_no_more_than_the_rest_is_above_a_percentile(values: list[float], percent: float) -> None:
    found = percentile(values, percent)
    assert found in values
    assert sum(value <= found for value in values) >= len(values) * percent / 100 - 1e-9
    assert sum(value < found for value in values) < len(values) * percent / 100


@given(st.floats(1, 1e15))
def test_a_limit_is_rounded_up_by_an_eighth_at_most(limit: float) -> None:
    found = rounded(limit)
    assert max(limit, LIMIT_BYTES_MIN) <= found <= max(limit, LIMIT_BYTES_MIN) * 1.125 + 1


def test_pages_are_read_for_the_time_and_brokers_stay_apart() -> None:
    waited: list[float] = []

    def read(urls: object) -> dict[str, Page]:
        key = ClientKey("", "etl", "produce")
        figures = ClientFigures(float(len(waited)), demand=10.0)
        return {"0": Page(0, {key: figures}), **({"1": Page(1, {key: figures})} if waited else {})}

    found = sampled(["u"], 6.0, read, waited.append, lambda: sum(waited))
    assert waited == [2.0, 2.0, 2.0]
    assert found[Observed("", "etl", "produce", "0")] == Samples([0.0, 1.0, 2.0, 3.0], [10.0] * 4)
    assert found[Observed("", "etl", "produce", "1")].rates == [1.0, 2.0, 3.0]
    with pytest.raises(CommandError, match="no metrics page answers"):
        sampled(["u"], 6.0, lambda _: {}, waited.append)


def test_of_who_is_under_no_quota_the_rate_is_what_was_counted() -> None:
    waited: list[float] = []
    key = ClientKey("bob", "free", "fetch")

    def read(_: object) -> dict[str, Page]:
        return {"0": Page(0, {key: ClientFigures(bytes_total=100.0 * len(waited) if len(waited) < 3 else 0.0)})}

    found = sampled(["u"], 6.0, read, waited.append, lambda: sum(waited))
    assert found[Observed("bob", "free", "fetch", "0")].rates == [50.0, 50.0]  # and none as the broker restarted


def test_the_file_is_what_apply_takes(tmp_path: Path) -> None:
    odd = Entity("Ünï cödé\n", 'a: "b"')
    observed = {
        Observed("", "etl", "produce", "0"): samples(3.0 * MIB),
        Observed("Ünï cödé\n", 'a: "b"', "fetch", "0"): samples(5.0 * MIB),
        Observed("bob", "", "fetch", "0"): samples(5.0 * MIB),
    }
    limits: dict[AnyEntity, dict[str, float]] = {
        Entity("bob", None): {"consumer_byte_rate": 1.0 * MIB},
        Entity(DEFAULT, None): {PRODUCE: 1.0},
    }
    owners: dict[AnyEntity, ClientQuota] = {Entity("bob", None): quota("of-bob", "bob", "Enforce")}
    made = [resource(found, "main", "default", owners) for found in recommend(observed, limits)]
    path = tmp_path / "quotas.yaml"
    path.write_text("---\n".join([FILE, *map(yaml.safe_dump, made)]))
    quotas = [entry.resource for entry in load([path]) if isinstance(entry.resource, ClientQuota)]
    declared = {quota.name: quota.spec for quota in quotas}
    assert declared["recommended-etl"].mode == "Observe"
    assert declared["recommended-etl"].limits.producer_byte_rate == 4 * MIB
    assert declared["of-bob"].mode == "Enforce"
    assert {entity_of(quota.spec.entity) for quota in quotas} == {ETL, odd, Entity("bob", None)}


def test_what_a_resource_says_besides_is_kept() -> None:
    limits = {"requestPercentage": 9}
    soon = {"from": "2027-01-01T00:00:00Z", "until": "2027-01-02T00:00:00Z", "reason": "sale", "limits": limits}
    owners: dict[AnyEntity, ClientQuota] = {Entity("bob", None): quota("of-bob", "bob", "Observe", overrides=[soon])}
    (found,) = recommend({Observed("bob", "", "fetch", "0"): samples(5.0 * MIB)}, {})
    made = ClientQuota.decode(resource(found, "main", "default", owners)).spec
    assert (made.mode, made.limits.request_percentage) == ("Observe", 50.0)
    assert made.overrides == owners[Entity("bob", None)].spec.overrides


def test_a_limit_of_each_broker_does_not_replace_one_of_the_cluster() -> None:
    owners: dict[AnyEntity, ClientQuota] = {Entity("bob", None): quota("of-bob", "bob", "Enforce", scope="Cluster")}
    found = recommend({Observed("bob", "", "fetch", "0"): samples(5.0 * MIB)}, {})
    lines = list(file_of(found, "main", "default", owners, How()))
    assert lines[2:] == ['# user=bob: left out, as ClientQuota "of-bob" is for the whole cluster.']


@contextmanager
def prometheus(answers: Mapping[str, object]) -> Iterator[str]:
    """A server that answers query_range by the name of the metric."""

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            (metric,) = parse_qs(urlsplit(self.path).query)["query"]
            body = json.dumps(answers.get(metric, answers.get(""))).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def matrix(*series: tuple[dict[str, str], list[tuple[float, str]]]) -> dict[str, object]:
    result = [{"metric": labels, "values": values} for labels, values in series]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


def test_prometheus_tells_rates_and_demand_of_the_time_that_has_passed() -> None:
    labels = {"client_id": "etl", "instance": "a:1", "user": ""}
    free = {"client_id": "x", "instance": "a:1", "user": "bob"}
    answers = {
        "": matrix(),
        "rate(kavka_client_bytes_total[2m])": matrix(
            ({**labels, "quota_type": "produce"}, [(0.0, "1")]), ({**free, "quota_type": "fetch"}, [(0.0, "7")])
        ),
        "kafka_server_produce_byte_rate": matrix((labels, [(0.0, "5"), (15.0, "6"), (30.0, "NaN")])),
        "kavka_client_demand_bytes_per_second": matrix(({**labels, "quota_type": "produce"}, [(15.0, "9")])),
    }
    with prometheus(answers) as url:
        assert kept(url, 60.0, 100.0) == {
            Observed("", "etl", "produce", "a:1"): Samples([5.0, 6.0], [5.0, 9.0]),
            Observed("bob", "x", "fetch", "a:1"): Samples([7.0], [7.0]),
        }


@pytest.mark.parametrize("said", [{"status": "error", "error": "no"}, {"status": "success"}, [], {"data": 1}])
def test_what_is_no_answer_of_prometheus_is_an_error_in_words(said: object) -> None:
    with prometheus({"": said}) as url, pytest.raises(AdminError, match="Prometheus"):
        kept(url, 60.0, 100.0)
    with pytest.raises(AdminError, match="could not ask Prometheus"):
        kept("http://127.0.0.1:1", 60.0, 100.0)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--for", "soon"], "is no duration"),
        (["--for", "0s"], "--for is more than 0s"),
        (["--percentile", "0"], "--percentile is above 0"),
        (["--headroom", "nan"], "--headroom is from 1 to 100"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(words: list[str], said: str) -> None:
    code, told = run("quota", "recommend", "--bootstrap", "127.0.0.1:1", *words)
    assert code == 1
    assert said in told


def test_the_defaults_are_those_of_the_document() -> None:
    assert How() == How("60s", None, 1.3, 95.0)
