"""Asks a cluster for its users and access rules, for the page."""

from kavka_operator.domain.access import Security
from kavka_operator.kafka.offsets_and_lag import Onlooker
from kavka_operator.live_views import sheets
from kavka_operator.web_page.documents import UNKNOWN, Document, facts, sheet_document


def access_document(bootstrap: str, security: Security) -> Document:
    """Return the users and access rules of a cluster. Raises AdminError."""
    client = Onlooker(bootstrap, security)
    try:
        found = client.access(sorted(client.members().brokers))
    finally:
        client.close()
    users, rules = sheets.users(found.credentials, found.rules), sheets.access_rules(found.rules)
    logins = ", ".join(sorted(found.logins)) if found.logins else UNKNOWN if found.logins is None else "none"
    return {
        "facts": facts([("Authorizer", "none" if found.rules is None else "yes", ""), ("Logins", logins, "")]),
        "sheets": [sheet_document(users, "Users"), sheet_document(rules, "Access rules (ACLs)")],
    }
