"""What is seen of the certificates of a secured cluster, and the words for it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kavka_operator.domain.plan import Word

Step = Literal["Rest", "Both", "Signing"]


@dataclass(frozen=True, slots=True)
class SeenCertificates:
    """The step in which the renewal of an authority is, and the ends of what there is.

    `other_ends` is the end of the authority that will sign, or of the one that did; `due` the time from which the
    next one signs.
    """

    step: Step
    authority_ends: datetime
    certificates_end: datetime | None
    other_ends: datetime | None = None
    due: datetime | None = None

    @property
    def words(self) -> tuple[Word, ...]:
        """The condition while an authority is renewed; none at rest."""
        if self.step == "Both":
            since = self.due.isoformat() if self.due is not None else ""
            words = (
                "another authority is trusted beside the one that signs, and signs itself once all nodes trust it, not"
                f" before {since}; clients outside have to trust what ca.crt holds by then"
            )
            return (Word("AuthorityRenewing", "True", "BothTrusted", words),)
        if self.step == "Signing":
            until = self.other_ends.isoformat() if self.other_ends is not None else ""
            words = f"the new authority signs; the former is trusted until it ends, {until}"
            return (Word("AuthorityRenewing", "True", "FormerTrusted", words),)
        return ()
