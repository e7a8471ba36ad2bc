"""The report as one page of HTML that needs nothing else: three figures and the traffic first, then the answers in four
groups, the worst first, then the evidence of each.

The tables can be sorted and searched by a script of the page's own; without one it reads the same.
"""

import hashlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final

from kavka_audit.questions.query_runner import Table
from kavka_audit.report.answers import ORDER, answer, counted
from kavka_audit.report.chain_summary import Chains, chains_line, chains_weight
from kavka_audit.report.completeness_map import heat
from kavka_audit.report.number_format import cell, date, heading, moment, seconds, sized
from kavka_audit.report.plot import plot
from kavka_audit.report.previous import Previous
from kavka_audit.report.severity import WORDS, weights
from kavka_audit.report.trend import Day, trend

ROWS_MAX: Final = 200
"""Rows of a table on the page; the files have all."""
CHARACTERS_MAX: Final = 120
TO_DO: Final = {"wrong": "wrong", "look": "to look at", "tidy": "to tidy up"}
GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "Security": ("denied_operations", "config_changes", "first_access", "unused_grants"),
    "Cost": ("chargeback", "label_chargeback", "top_talkers", "lineage"),
    "Capacity": ("throttle_incidents", "quota_recommendations", "hot_partitions", "traffic"),
    "Hygiene": ("completeness", "topic_completeness", "audit_gaps", "deletable_topics"),
}
BY_OPERATOR: Final = "is_operator"
Rows = Sequence[Sequence[Any]]
NOT_KNOWN: Final = "Nothing was measured that would tell."
assert sorted(name for names in GROUPS.values() for name in names) == sorted(ORDER)


@dataclass(frozen=True, slots=True)
class Beside:
    """What the page says beside the answers: the cluster's name, its chains, what the runs before had, and what was
    moved on each day.
    """

    name: str = ""
    chains: Chains | None = None
    previous: Previous = field(default_factory=Previous)
    days: Sequence[Day] = ()


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text(encoding="utf-8")


def policy() -> str:
    """Return what a browser may do with the page: run its one script, and fetch nothing. Names in the trail are
    clients' own words, so that none of them can have it do more.
    """
    digest = b64encode(hashlib.sha256(_file("page.js").encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def page(
    cluster_id: str, now_ms: int, tables: Mapping[str, Table], untold: Sequence[str], beside: Beside | None = None
) -> str:
    """Return the page."""
    beside, weighed = beside or Beside(), weights(tables, untold)
    heaviest = list(WORDS).index
    groups = {group: sorted(names, key=lambda name: heaviest(weighed[name])) for group, names in GROUPS.items()}
    ordered = sorted(groups.items(), key=lambda found: heaviest(weighed[found[1][0]]))
    cards = "".join(
        f'<h2>{group}</h2><ul class="answers">'
        + "".join(_card(tables[name], weighed[name], beside.previous, now_ms) for name in names)
        + "</ul>"
        for group, names in ordered
    )
    sections = "".join(_section(tables[name]) for _, names in ordered for name in names)
    notes = "".join(f'<p class="untold">The cluster did not tell {escape(words)}</p>' for words in untold)
    title = f"{beside.name} ({cluster_id})" if beside.name and beside.name != cluster_id else cluster_id
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy()}">'
        f"<title>Audit of {escape(title)}</title><style>{_file('page.css')}</style>"
        f'<h1>Audit</h1><p class="of">Cluster {escape(title)}, {moment(now_ms)}{_since(beside.previous)}</p>'
        f'<p class="chains"><em class="{chains_weight(beside.chains)}">{escape(chains_line(beside.chains))}</em></p>'
        f"{_figures(tables, weighed)}{plot(tables['traffic'].dicts())}{trend(beside.days, now_ms)}"
        f"{_summary(weighed)}{notes}{cards}{sections}<script>{_file('page.js')}</script></html>\n"
    )


def _since(previous: Previous) -> str:
    return f"; changes are since {moment(previous.now_ms)}" if previous.now_ms else ""


def _figures(tables: Mapping[str, Table], weighed: Mapping[str, str]) -> str:
    """Return the three figures: what is moved, who is held back, what was changed."""
    traffic, held, changes = (tables[name].dicts() for name in ("traffic", "throttle_incidents", "config_changes"))
    moved = sum(sum(row[name] or 0 for name in ("written_bytes_total", "read_bytes_total")) for row in traffic[:1])
    is_known = weighed["throttle_incidents"] != "none"
    most = f"most by {tables['chargeback'].dicts()[0]['principal']}" if tables["chargeback"].rows else "by nobody"
    longest = f"the longest {seconds(held[0]['throttle_time_ms'])}" if held else "nobody was held back"
    changed = counted(tables["config_changes"])
    last = f"the last by {changes[0]['principal']}" if changed else "nobody changed anything"
    if operators := tables["config_changes"].count - changed:
        last += f"; {operators:,} more by the operator" if changed else f" but the operator: {operators:,} times"
    found = (
        ("chargeback", "moved", sized(moved), most),
        ("throttle_incidents", "held back", f"{tables['throttle_incidents'].count:,}", longest),
        ("config_changes", "changed", f"{changed:,}", last),
    )
    shown = [
        f'<li><a href="#{name}"><b>{figure if is_known else "no data"}</b> {label}<span>'
        f"{escape(words) if is_known else ''}</span></a></li>"
        for name, label, figure, words in found
    ]
    return f'<ul class="figures">{"".join(shown)}</ul>'


def _summary(weighed: Mapping[str, str]) -> str:
    """Return how many answers weigh what a person should act on, for each such weight."""
    counts = {kind: sum(found == kind for found in weighed.values()) for kind in TO_DO}
    marks = "".join(f'<em class="{kind}">{count} {TO_DO[kind]}</em>' for kind, count in counts.items() if count)
    return f'<p class="sum">{marks or "<em>Nothing to be done.</em>"}</p>'


def _card(table: Table, kind: str, previous: Previous, now_ms: int) -> str:
    question, changes = table.question, list[str]()
    mark = f'<em class="{kind}">{WORDS[kind]}</em>'
    if change := previous.change(table):
        changes.append(f"{change:+,} since the last run")
    day_ms = previous.week_before(now_ms)
    if day_ms is not None and (change := previous.change_since(day_ms, table)):
        changes.append(f"{change:+,} since {date(day_ms)}")
    since = f"<i>{', '.join(changes)}</i>" if changes else ""
    said = NOT_KNOWN if kind == "none" and not table.count else answer(table)
    words = f"<b>{escape(question.title)}</b>{escape(said)} {since}"
    return f'<li class="{kind}"><a href="#{question.name}">{mark}{words}</a></li>'


def _section(table: Table) -> str:
    question, name = table.question, table.question.name
    evidence = f'<a href="tables/{name}.csv">CSV</a> <a href="tables/{name}.parquet">Parquet</a>'
    shown, folded = _shown(table)
    told = f"{len(shown) + len(folded):,} of {table.count:,} rows; all of them: {evidence}"
    drawn = heat(table.dicts()) if name == "completeness" and table.rows else ""
    body = _table(table.columns, shown)
    if count := table.count - counted(table):
        words = f"{count:,} change{'' if count == 1 else 's'} by the operator"
        body += f"<details><summary>{words}</summary>{_table(table.columns, folded)}</details>"
    explanation = escape(question.explanation.replace("`", ""))
    return (
        f'<section id="{name}"><h2>{escape(question.title)}</h2><p>{escape(answer(table))}</p>'
        f'<p class="why">{explanation}</p>{drawn}{body}<p class="more">{told}</p></section>'
    )


def _shown(table: Table) -> tuple[Rows, Rows]:
    """Return the first rows, and the first of those that are folded: the operator's changes."""
    rows = [(bool(told.get(BY_OPERATOR)), row) for told, row in zip(table.dicts(), table.rows, strict=True)]
    shown, folded = ([row for is_folded, row in rows if is_folded is kind][:ROWS_MAX] for kind in (False, True))
    return shown, folded


def _table(columns: Sequence[str], rows: Rows) -> str:
    """Return rows as a table; without rows nothing. Sums of all rows, which the answer says, are left out."""
    if not rows:
        return ""
    shown = [place for place, name in enumerate(columns) if not name.endswith("_total") and name != BY_OPERATOR]
    columns, rows = [columns[place] for place in shown], [[row[place] for place in shown] for row in rows]
    kinds = [_kind(column, [row[place] for row in rows]) for place, column in enumerate(columns)]
    head = "".join(f'<th class="{kind}">{escape(heading(column))}' for column, kind in zip(columns, kinds, strict=True))
    body = "".join("<tr>" + "".join(_cell(*found) for found in zip(columns, row, kinds, strict=True)) for row in rows)
    return f'<div class="scroll"><table><tr>{head}{body}</table></div>'


def _cell(column: str, value: Any, kind: str) -> str:
    text = cell(column, value)
    shown = text if len(text) <= CHARACTERS_MAX else text[: CHARACTERS_MAX - 1] + "…"
    order = f' data-order="{value}"' if kind != "text" and value is not None else ""
    bar = f' style="--share:{value * 100:.1f}%"' if column == "share" and value is not None else ""
    return f'<td class="{kind}{" share" if bar else ""}"{order}{bar}>{escape(shown)}'


def _kind(column: str, values: Sequence[Any]) -> str:
    if column.endswith("_ms") and not column.startswith("throttle"):
        return "time"
    return (
        "figure" if any(isinstance(value, int | float) and not isinstance(value, bool) for value in values) else "text"
    )
