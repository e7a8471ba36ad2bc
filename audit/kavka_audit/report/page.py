"""The report as one page of HTML that needs nothing else: the answers first, then the evidence of each."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from kavka_audit.questions.query_runner import Table
from kavka_audit.report.answers import ORDER, answer
from kavka_audit.report.completeness_map import heat
from kavka_audit.report.number_format import cell, moment
from kavka_audit.report.plot import plot
from kavka_audit.report.severity import WORDS, weight

ROWS_MAX: Final = 20
CHARACTERS_MAX: Final = 120
PLOTS: Final = {"traffic": plot, "completeness": heat}
TO_DO: Final = {"wrong": "wrong", "look": "to look at", "tidy": "to tidy up"}
HEADINGS: Final = {"cents": "amount"}
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""Names in the trail are clients' own words: should one slip through, the browser fetches and runs nothing."""


def page(cluster_id: str, now_ms: int, tables: Mapping[str, Table], untold: Sequence[str]) -> str:
    """Return the page."""
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    ordered = sorted((tables[name] for name in ORDER), key=lambda table: list(WORDS).index(weight(table)))
    cards = "".join(_card(table) for table in ordered)
    sections = "".join(_section(table) for table in ordered)
    notes = "".join(f'<p class="untold">The cluster did not tell {escape(words)}</p>' for words in untold)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>Audit of {escape(cluster_id)}</title><style>{style}</style>"
        f'<h1>Audit</h1><p class="of">Cluster {escape(cluster_id)}, {moment(now_ms)}</p>'
        f'{_summary(ordered)}{notes}<ul class="answers">{cards}</ul>{sections}</html>\n'
    )


def _summary(tables: Sequence[Table]) -> str:
    """Return how many answers weigh what a person should act on, for each such weight."""
    counts = {kind: sum(weight(table) == kind for table in tables) for kind in ("wrong", "look", "tidy")}
    marks = "".join(f'<em class="{kind}">{count} {TO_DO[kind]}</em>' for kind, count in counts.items() if count)
    return f'<p class="sum">{marks or "<em>Nothing to be done.</em>"}</p>'


def _card(table: Table) -> str:
    question, kind = table.question, weight(table)
    mark = f'<em class="{kind}">{WORDS[kind]}</em>'
    words = f"<b>{escape(question.title)}</b>{escape(answer(table))}"
    return f'<li class="{kind}"><a href="#{question.name}">{mark}{words}</a></li>'


def _section(table: Table) -> str:
    question = table.question
    evidence = f'<a href="tables/{question.name}.parquet">tables/{question.name}.parquet</a>'
    told = f"{min(table.count, ROWS_MAX):,} of {table.count:,} rows; all of them: {evidence}"
    drawn = PLOTS[question.name](table.dicts()) if question.name in PLOTS and table.rows else ""
    rows = table.rows[:ROWS_MAX]
    body = _table(table.columns, rows) if rows else ""
    explanation = escape(question.explanation.replace("`", ""))
    return (
        f'<section id="{question.name}"><h2>{escape(question.title)}</h2><p>{escape(answer(table))}</p>'
        f'<p class="why">{explanation}</p>{drawn}{body}<p class="more">{told}</p></section>'
    )


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as a table. Sums of all rows, which the answer says, are left out."""
    shown = [place for place, column in enumerate(columns) if not column.endswith("_total")]
    columns, rows = [columns[place] for place in shown], [[row[place] for place in shown] for row in rows]
    kinds = [_kind(column, [row[place] for row in rows]) for place, column in enumerate(columns)]
    head = "".join(f'<th class="{kind}">{_heading(column)}' for column, kind in zip(columns, kinds, strict=True))
    body = "".join("<tr>" + "".join(_cell(*found) for found in zip(columns, row, kinds, strict=True)) for row in rows)
    return f'<div class="scroll"><table><tr>{head}{body}</table></div>'


def _cell(column: str, value: Any, kind: str) -> str:
    text = cell(column, value)
    shown = text if len(text) <= CHARACTERS_MAX else text[: CHARACTERS_MAX - 1] + "…"
    bar = f' style="--share:{value * 100:.1f}%"' if column == "share" and value is not None else ""
    return f'<td class="{kind}{" share" if bar else ""}"{bar}>{escape(shown)}'


def _kind(column: str, values: Sequence[Any]) -> str:
    if column.endswith("_ms") and not column.startswith("throttle"):
        return "time"
    return (
        "figure" if any(isinstance(value, int | float) and not isinstance(value, bool) for value in values) else "text"
    )


def _heading(column: str) -> str:
    return escape(HEADINGS.get(column, column.replace("_ms", "").replace("_", " ")))
