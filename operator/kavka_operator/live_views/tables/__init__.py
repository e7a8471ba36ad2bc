"""The views: each makes a sheet of a history."""

from collections.abc import Callable

from kavka_operator.live_views.model import History
from kavka_operator.live_views.tables.clients import clients
from kavka_operator.live_views.tables.groups import groups
from kavka_operator.live_views.tables.nodes import nodes
from kavka_operator.live_views.tables.quotas import quotas
from kavka_operator.live_views.tables.shares import shares
from kavka_operator.live_views.tables.topics import topics
from kavka_operator.live_views.tables.transactions import transactions
from kavka_operator.web_page.sheet import Sheet

View = Callable[[History], Sheet]

VIEWS: dict[str, View] = {
    "clients": clients,
    "topics": topics,
    "groups": groups,
    "quotas": quotas,
    "nodes": nodes,
    "transactions": transactions,
    "shares": shares,
}
