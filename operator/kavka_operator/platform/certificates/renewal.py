"""When an authority and its certificates are renewed, without a restart and without a client that fails.

An authority is renewed in three steps. First there is another, which is trusted beside the one that signs (`Both`);
nodes take that over, and clients have half of `renewBeforeDays` for it. Then the new one signs, and all certificates
are drawn again (`Signing`); the former stays trusted to its end, for what still shows its certificates. Then it is
forgotten. The second step waits until every node that can be asked trusts the new one. A certificate is drawn again
when its end is near, when its node has a host name that it lacks, or when another authority signs.

What is kept is a map of texts, as a Secret has it: `tls.crt` and `tls.key` of the authority that signs, `next.crt` and
`next.key` of the one that will, `former.crt` of the one that did.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from kavka_operator.api.cluster import KafkaCluster
from kavka_operator.api.security import ClusterTls
from kavka_operator.domain.certificates import SeenCertificates, Step
from kavka_operator.platform.certificates.authority import (
    Facts,
    Pair,
    ends_of,
    facts,
    is_signed_by,
    new_authority,
    signed,
)
from kavka_operator.platform.security import ORGANIZATION

CERTIFICATE, KEY, NEXT_CERTIFICATE, NEXT_KEY, FORMER = "tls.crt", "tls.key", "next.crt", "next.key", "former.crt"
NAME_LENGTH_MAX: Final = 38  # of a cluster, in the name of its authority

Texts = Mapping[str, str]
IsTrusted = Callable[[Pair], bool]
"""Whether every node that can be asked trusts an authority."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """The certificates of one cluster at one moment. `kept` are the texts of its authority, none before its first."""

    cluster: KafkaCluster
    kept: Texts
    now: datetime

    @property
    def tls(self) -> ClusterTls:
        """The certificates that the resource asks for."""
        return self.cluster.spec.tls or ClusterTls()

    @property
    def signer(self) -> Pair:
        """The authority that signs."""
        return Pair(self.kept[CERTIFICATE], self.kept[KEY])

    @property
    def next(self) -> Pair | None:
        """The authority that will sign."""
        pair = Pair(self.kept.get(NEXT_CERTIFICATE, ""), self.kept.get(NEXT_KEY, ""))
        return pair if facts(pair) is not None else None

    @property
    def trusted(self) -> str:
        """The certificates of all authorities that are trusted, the one that signs first."""
        names = (CERTIFICATE, NEXT_CERTIFICATE, FORMER)
        return "".join(f"{self.kept[name].strip()}\n" for name in names if self.kept.get(name))

    def advanced(self, is_trusted: IsTrusted) -> dict[str, str]:
        """The texts of the authority as they are to be now: a step further, where one is due."""
        there = facts(self.signer) if self.kept.get(CERTIFICATE) and self.kept.get(KEY) else None
        if there is None:
            return self._begun()
        found = self._without_former()
        margin = timedelta(days=self.tls.authority.renew_before_days)
        if (following := self.next) is None:
            is_due = self.now >= there.ends - margin
            return found | (self._named(self._drawn()) if is_due else {})
        is_over = self.now >= there.ends
        if is_over or (self.now >= there.ends - margin / 2 and is_trusted(following)):
            return {CERTIFICATE: following.certificate, KEY: following.key, FORMER: self.kept[CERTIFICATE]}
        return found

    def certificate(self, former: Pair, name: str, hosts: Iterable[str]) -> Pair:
        """A certificate that holds for these hosts: the former, as long as it does."""
        wanted, there = frozenset(hosts), facts(former)
        if there is not None and not self._is_due(there, wanted, former.certificate):
            return former
        return signed(self.signer, name, ORGANIZATION, wanted, self.now, self._end())

    def seen_of(self, pairs: Iterable[Pair]) -> SeenCertificates:
        """The words and dates for the status, with the certificates that it has signed."""
        signer, following, former = (
            ends_of(self.kept.get(name, "")) for name in (CERTIFICATE, NEXT_CERTIFICATE, FORMER)
        )
        assert signer is not None, "it was drawn, or read, just before"
        step: Step = "Both" if following is not None else "Signing" if former is not None else "Rest"
        due = signer - timedelta(days=self.tls.authority.renew_before_days) / 2
        ends = [end for pair in pairs if (end := ends_of(pair.certificate)) is not None]
        return SeenCertificates(step, signer, min(ends, default=None), following or former, due)

    def _begun(self) -> dict[str, str]:
        pair = self._drawn()
        return {CERTIFICATE: pair.certificate, KEY: pair.key}

    def _drawn(self) -> Pair:
        ends = self.now + timedelta(days=self.tls.authority.validity_days)
        # Each has a name of its own: where two are trusted, a client finds by the name which has signed.
        name = f"{self.cluster.metadata.name[:NAME_LENGTH_MAX]} authority {self.now:%Y%m%d%H%M%S}"
        return new_authority(name, ORGANIZATION, self.now, ends)

    def _named(self, pair: Pair) -> dict[str, str]:
        return {NEXT_CERTIFICATE: pair.certificate, NEXT_KEY: pair.key}

    def _without_former(self) -> dict[str, str]:
        """The texts that are kept, without an authority that has signed before and is over."""
        end = ends_of(self.kept.get(FORMER, ""))
        return {name: text for name, text in self.kept.items() if name != FORMER or (end and self.now < end)}

    def _end(self) -> datetime:
        """The end of a certificate that is signed now: not beyond that of its authority."""
        authority = ends_of(self.kept[CERTIFICATE])
        assert authority is not None, "it was drawn, or read, just before"
        return min(authority, self.now + timedelta(days=self.tls.certificates.validity_days))

    def _is_due(self, there: Facts, wanted: frozenset[str], certificate: str) -> bool:
        """Whether a certificate is drawn again. Near the end of its authority another would end no later."""
        is_near = self.now >= there.ends - timedelta(days=self.tls.certificates.renew_before_days)
        return (
            not wanted <= there.names
            or (is_near and self._end() > there.ends)
            or not is_signed_by(certificate, self.kept[CERTIFICATE])
        )
