"""The views: each makes a sheet of a history."""

from collections.abc import Callable

from kavka_operator.web_page.sheet import Sheet
from kavka_top.model import History
from kavka_top.views.clients import clients
from kavka_top.views.groups import groups
from kavka_top.views.nodes import nodes
from kavka_top.views.quotas import quotas
from kavka_top.views.shares import shares
from kavka_top.views.topics import topics
from kavka_top.views.transactions import transactions

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
