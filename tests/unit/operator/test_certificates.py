"""Certificates over the years: nobody is ever shown one that it cannot trust, and no key is told to anybody."""

import json
import ssl
import stat
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.domain.access import Security
from kavka_operator.kafka.connection import context_of
from kavka_operator.platform.certificates.authority import ends_of, facts, is_signed_by
from kavka_operator.platform.certificates.bundles import parted
from kavka_operator.platform.certificates.maintenance import Kept, Place, Round, keep
from kavka_operator.platform.local import certificates
from kavka_operator.platform.local.access import CertificatesError, own_access
from kavka_operator.platform.local.layout import Layout
from tests.unit.operator.pods import main

BEGIN = datetime(2026, 11, 25, 19, 0, tzinfo=UTC)
DAY = timedelta(days=1)
SHORT = {
    "authority": {"validityDays": 100, "renewBeforeDays": 40},
    "certificates": {"validityDays": 20, "renewBeforeDays": 5},
}
CLIENTS = {"name": "CLIENTS", "port": 9092, "protocol": "SASL_SSL", "sasl": {}}


class Memory:
    """A `Shelf` that counts what is written."""

    def __init__(self) -> None:
        self.kept: dict[Place | int, dict[str, str]] = {}
        self.writes = 0

    def read(self, place: Place | int) -> Mapping[str, str]:
        return self.kept.get(place, {})

    def write(self, place: Place | int, texts: Mapping[str, str]) -> None:
        if self.kept.get(place) != dict(texts):
            self.kept[place] = dict(texts)
            self.writes += 1


def secured(**spec: Any) -> KafkaCluster:
    return main(**{"listeners": [CLIENTS], "tls": SHORT, **spec})


class Years:
    """A cluster whose certificates are kept day by day. `lets_in` is what nodes say to the next authority."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.cluster, self.shelf, self.now = cluster, Memory(), BEGIN
        self.hosts: dict[int, Iterable[str]] = {0: ["localhost", "127.0.0.1"], 1: ["localhost"]}
        self.lets_in = True
        self.asked: list[Security] = []

    def round(self) -> Kept:
        asked = Round(self.cluster, self.hosts, {}, ["localhost"], self._is_let_in, self.now)
        return keep(asked, self.shelf)

    def _is_let_in(self, security: Security) -> bool:
        self.asked.append(security)
        return self.lets_in

    def certificate(self, node: int) -> str:
        return parted(self.shelf.kept[node]["node.pem"]).certificate

    @property
    def trusted(self) -> str:
        return self.shelf.kept[Place.CA]["ca.crt"]


def authorities(text: str) -> list[str]:
    end = "-----END CERTIFICATE-----\n"
    return [part + end for part in text.split(end) if part.strip()]


def is_trusted(certificate: str, trusted: str, now: datetime) -> bool:
    """Whether somebody who trusts these authorities takes a certificate now."""
    end = ends_of(certificate)
    signers = [one for one in authorities(trusted) if is_signed_by(certificate, one)]
    return end is not None and now < end and any(now < (ends_of(one) or now) for one in signers)


def test_over_the_years_each_node_and_each_client_trusts_what_it_is_shown() -> None:
    """A client takes what ca.crt holds within half of `renewBeforeDays`, a node what it was given on the day before."""
    years = Years(secured())
    steps = {years.round().seen.step}
    held = nodes = years.trusted
    taken: list[tuple[datetime, str]] = []
    for _ in range(250):
        years.now += DAY
        steps.add(years.round().seen.step)
        for node in years.hosts:
            assert is_trusted(years.certificate(node), nodes, years.now), f"node {node} is not trusted on {years.now}"
            assert is_trusted(years.certificate(node), held, years.now), f"a client does not trust it on {years.now}"
        nodes = years.trusted
        taken.append((years.now, years.trusted))
        held = next(text for when, text in taken if when >= years.now - 19 * DAY)
    assert steps == {"Rest", "Both", "Signing"}
    assert len({authorities(text)[0] for _, text in taken}) >= 4, "several authorities have signed"


def test_at_rest_nothing_is_written() -> None:
    years = Years(secured())
    years.round()
    before, text = years.shelf.writes, years.certificate(0)
    for _ in range(14):
        years.now += DAY
        years.round()
    assert (years.shelf.writes, years.certificate(0)) == (before, text)
    years.now += 2 * DAY
    years.round()
    assert years.certificate(0) != text


def test_near_the_end_of_its_authority_a_certificate_is_not_drawn_again_and_again() -> None:
    years = Years(secured())
    years.round()
    years.lets_in = False  # the next authority may not sign
    writes = []
    for _ in range(99):
        years.now += DAY
        years.round()
        writes.append(years.shelf.writes)
    assert len(set(writes[-8:])) == 1, "what would end no later is not drawn"


def test_the_next_authority_signs_once_each_node_lets_in_whom_it_has_signed() -> None:
    years = Years(secured())
    years.lets_in = False
    years.round()
    years.now += 79 * DAY
    assert years.round().seen.step == "Both"
    assert not years.asked, "clients have half of the time before any node is asked"
    years.now += 2 * DAY
    assert years.round().seen.step == "Both"
    (shown,) = years.asked
    first, following = authorities(years.trusted)
    assert is_signed_by(shown.certificate or "", following)
    assert is_signed_by(years.certificate(0), first)
    years.lets_in = True
    assert years.round().seen.step == "Signing"
    assert all(is_signed_by(years.certificate(node), following) for node in years.hosts)
    assert authorities(years.trusted) == [following, first]
    years.now += 20 * DAY
    assert years.round().seen.step == "Rest"
    assert authorities(years.trusted) == [following]


def test_an_authority_that_is_over_is_replaced_whether_nodes_answer_or_not() -> None:
    years = Years(secured())
    years.round()
    years.now += 61 * DAY
    years.round()
    years.lets_in = False
    years.now += 60 * DAY
    years.round()
    assert is_trusted(years.certificate(0), years.trusted, years.now)


def test_a_node_that_is_reached_by_another_name_gets_a_certificate_for_it() -> None:
    years = Years(secured())
    years.round()
    first, other = years.certificate(0), years.certificate(1)
    years.hosts[0] = ["localhost", "127.0.0.1", "kafka-0.example.com"]
    years.round()
    found = facts(parted(years.shelf.kept[0]["node.pem"]))
    assert found is not None
    assert found.names == {"localhost", "127.0.0.1", "kafka-0.example.com"}
    assert years.certificate(0) != first
    assert years.certificate(1) == other
    years.hosts[0] = ["localhost"]
    again = years.certificate(0)
    years.round()
    assert years.certificate(0) == again, "a name more does no harm"


@pytest.mark.parametrize("damage", ["", "no PEM", "the key of another"])
def test_what_cannot_be_read_is_drawn_again(damage: str) -> None:
    years = Years(secured())
    years.round()
    text = years.shelf.kept[1]["node.pem"] if damage == "the key of another" else damage
    if damage == "the key of another":
        text = parted(text).key + years.certificate(0)
    years.shelf.kept[0]["node.pem"] = text
    years.round()
    assert facts(parted(years.shelf.kept[0]["node.pem"])) is not None


def test_no_key_is_told() -> None:
    years = Years(secured())
    kept = years.round()
    years.now += 80 * DAY
    told = [repr(kept), repr(years.round()), repr(years.asked), str(kept.seen.words)]
    told += [json.dumps(years.shelf.kept[Place.CA])]
    assert not any("PRIVATE KEY" in text for text in told)
    assert "PRIVATE KEY" in json.dumps(years.shelf.kept[Place.AUTHORITY])


def test_openssl_takes_them_and_refuses_those_of_another_authority(tmp_path: Path) -> None:
    first, other = Years(secured()).round(), Years(secured()).round()
    assert talks(first.security, first.security, tmp_path)
    with pytest.raises(ssl.SSLError):
        talks(first.security, other.security, tmp_path)


def talks(server: Security, client: Security, directory: Path) -> bool:
    """A handshake in memory, in which both show a certificate. Raises ssl.SSLError where one does not take it."""
    listening = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listening.load_verify_locations(cadata=server.authority)
    listening.verify_mode = ssl.CERT_REQUIRED
    (directory / "server.pem").write_text(f"{server.key}{server.certificate}")
    listening.load_cert_chain(directory / "server.pem")
    pipes = [ssl.MemoryBIO() for _ in range(4)]
    near = listening.wrap_bio(pipes[0], pipes[1], server_side=True)
    far = context_of(client).wrap_bio(pipes[2], pipes[3], server_hostname="localhost")
    done = [False, False]
    for _ in range(10):
        for place, side in enumerate((far, near)):
            try:
                side.do_handshake()
                done[place] = True
            except ssl.SSLWantReadError:
                pass
            pipes[0].write(pipes[3].read())
            pipes[2].write(pipes[1].read())
    return all(done)


def test_files_of_this_machine_are_read_by_their_user_alone(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "default", "main")
    kept = certificates.keep(secured(), layout, {0: ["localhost"]}, [], datetime.now(UTC))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"node.pem", "operator.pem", "authority.json", "ca.crt"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert own_access(layout) == kept.security
    assert certificates.context(layout).verify_mode is ssl.CERT_REQUIRED


def test_a_damaged_authority_is_not_replaced_in_silence(tmp_path: Path) -> None:
    layout = Layout(tmp_path, "default", "main")
    certificates.keep(secured(), layout, {0: ["localhost"]}, [], datetime.now(UTC))
    path = layout.certificates / certificates.KEPT_FILE
    path.write_text("{")
    with pytest.raises(CertificatesError, match="is damaged; put back a copy"):
        certificates.keep(secured(), layout, {0: ["localhost"]}, [], datetime.now(UTC))
    assert path.read_text() == "{"


def test_a_secret_that_a_listener_names_and_that_is_not_there_is_told_with_its_field(tmp_path: Path) -> None:
    listener = {"name": "WEB", "port": 9092, "protocol": "SSL", "tls": {"secretRef": {"name": "kafka-tls"}}}
    layout = Layout(tmp_path, "default", "main")
    with pytest.raises(CertificatesError, match=r'spec.listeners\[WEB\].tls.secretRef: there is no Secret "kafka-tls"'):
        certificates.keep(secured(listeners=[listener]), layout, {0: ["localhost"]}, [], datetime.now(UTC))
    layout.secret("kafka-tls").mkdir(parents=True)
    (layout.secret("kafka-tls") / "tls.crt").write_text("certificate\n")
    with pytest.raises(CertificatesError, match=r"has no tls\.key; add it"):
        certificates.keep(secured(listeners=[listener]), layout, {0: ["localhost"]}, [], datetime.now(UTC))
    (layout.secret("kafka-tls") / "tls.key").write_text("key\n")
    certificates.keep(secured(listeners=[listener]), layout, {0: ["localhost"]}, [], datetime.now(UTC))
    assert (layout.certificates_of(0) / "listener-web.pem").read_text() == "key\ncertificate\n"


def test_a_secured_cluster_without_the_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "kavka_operator.platform.certificates"
    monkeypatch.setitem(sys.modules, f"{name}.maintenance", None)
    monkeypatch.delattr(sys.modules[name], "maintenance")
    with pytest.raises(CertificatesError, match=r"pip install 'kavka\[tls\]'"):
        certificates.keep(secured(), Layout(tmp_path, "default", "main"), {0: ["localhost"]}, [], datetime.now(UTC))
