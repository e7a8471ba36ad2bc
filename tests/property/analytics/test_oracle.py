"""Every answer, row by row, is that of an oracle which reads happenings one by one, for trails that are drawn."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from math import isclose
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kavka_audit.questions.query_runner import Question, Table, questions
from tests.property.analytics.drawn_trails import Delta, Parquet, draw, take_in
from tests.property.analytics.oracle import ORACLE, Known, Row, Rows, change_order, fair_parts
from tests.unit.analytics.trail import ROWS_MAX

ORDERS: Final[Mapping[str, Callable[[Row], Row]]] = {"config_changes": change_order}
"""Orders that leave several rows in any order."""
BILLS: Final = {"chargeback": 0, "label_chargeback": 1}
"""Answers whose last column is a part of a bill, and how many of the first columns tell bills apart."""


def test_each_question_has_an_oracle() -> None:
    assert [*ORACLE] == [question.name for question in questions()]


def differences(found: Mapping[str, Table], known: Known) -> Iterator[str]:
    """Give each answer that is not the oracle's, with the rows that differ."""
    for name, table in found.items():
        expected = ORACLE[name](known)
        if difference := _difference(name, table.rows, expected, known.settings.bill_cents):
            yield f"{name}: {difference}"


def _difference(name: str, found: Rows, expected: Rows, bill_cents: int) -> str:
    if name in BILLS:
        names = BILLS[name]
        for bill in {row[:names] for row in (*found, *expected)}:
            cents, exact = ([row[-1] for row in rows if row[:names] == bill] for rows in (found, expected))
            if len(cents) != len(exact) or not fair_parts(exact, cents, bill_cents):
                return f"{bill_cents} cents in parts {cents}, and not about {[float(part) for part in exact]}"
        found, expected = ([row[:-1] for row in rows] for rows in (found, expected))
    if order := ORDERS.get(name):
        if [*map(order, found)] != [*map(order, expected)]:
            return f"the order of {found} is not that of {expected}"
        found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    for place in range(max(len(found), len(expected))):
        rows = [side[place] if place < len(side) else None for side in (found, expected)]
        if not _is_same(*rows):
            return f"row {place} is {rows[0]}, and not {rows[1]}"
    return ""


def _is_same(found: Row | None, expected: Row | None) -> bool:
    if found is None or expected is None or len(found) != len(expected):
        return False
    return all(
        isclose(one, other, rel_tol=1e-9) if isinstance(other, Fraction | float) else one == other
        for one, other in zip(found, expected, strict=True)
    )


def judged(seed: int, events: int, way: Parquet | Delta) -> list[str]:
    """Return what differs in the answers of a lake that took in a drawn trail."""
    drawn = draw(seed, events)
    with TemporaryDirectory() as directory:
        lake, known = take_in(Path(directory), drawn, way)
        return [*differences(way.engine.ask(lake, drawn.settings, ROWS_MAX), known)]


SEEDS: Final = st.integers(0, 2**32)
EVENTS: Final = st.integers(1, 50)


@pytest.mark.thorough
@settings(max_examples=8, deadline=None)
@given(SEEDS, EVENTS)
def test_answers_are_those_of_the_oracle(seed: int, events: int) -> None:
    assert judged(seed, events, Parquet()) == []


@pytest.mark.thorough
@settings(max_examples=2, deadline=None)
@given(SEEDS, EVENTS)
def test_answers_from_delta_tables_are_those_of_the_oracle(seed: int, events: int) -> None:
    assert judged(seed, events, Delta()) == []


PLANTED: Final[Mapping[str, tuple[str, str]]] = {
    "audit_gaps": ("ahead_ms > 300000", "ahead_ms > 3000000000"),
    "chargeback": ("ranked.place <= missing.cents", "ranked.place < missing.cents"),
    "config_changes": (" AND resource_type <> 'transactional_id'", ""),
    "deletable_topics": ("coalesce(used.last_use_ms, 0)", "coalesce(used.last_write_ms, 0)"),
    "denied_operations": ("min(refused.start_ms)", "min(refused.end_ms)"),
    "first_access": ("users.first_ms > max(settings.now_ms", "users.first_ms < max(settings.now_ms"),
    "hot_partitions": ("partitions.records >= 1000", "partitions.records > 1000"),
    "label_chargeback": ("of_principal.value, of_topic.value", "of_topic.value, of_principal.value"),
    "lineage": ("fetched.topic = written.topic", "fetched.topic = written.topic AND reader <> writer"),
    "quota_recommendations": ("THEN 0.25", "THEN 0.5"),
    "throttle_incidents": (">= 300000", ">= 180000"),
    "top_talkers": ("sum(uses.records)", "count(uses.records)"),
    "topic_completeness": ("ORDER BY completeness.missing + completeness.duplicates DESC", "ORDER BY missing DESC"),
    "traffic": ("least(traffic_buckets.bucket_ms, ", "greatest(traffic_buckets.bucket_ms, "),
    "unused_grants": ("grants.operation = 'ALL' OR ", ""),
}
"""A defect in the SQL of each question: what stands there, and what stands there instead."""
LAKES: Final = 6


def planted(question: Question) -> Question:
    """Return a question with its defect."""
    right, wrong = PLANTED.get(question.name, ("", ""))
    assert right in question.sql, question.name
    return replace(question, sql=question.sql.replace(right, wrong) if right else question.sql)


@pytest.mark.thorough
def test_planted_defects_are_found(tmp_path: Path) -> None:
    """Each is found in the answer that has it, and in no other."""
    defective, found, way = tuple(map(planted, questions())), set[str](), Parquet()
    for seed in range(LAKES):
        drawn = draw(seed, 40)
        lake, known = take_in(tmp_path / str(seed), drawn, way)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("kavka_audit.questions.query_runner.questions", lambda: defective)
            answers = way.engine.ask(lake, drawn.settings, ROWS_MAX)
        found |= {difference.partition(":")[0] for difference in differences(answers, known)}
        if found == PLANTED.keys():
            break
    assert found == PLANTED.keys()


@pytest.mark.extended
@pytest.mark.parametrize("way", [Parquet, Delta])
@settings(max_examples=150, deadline=None)
@given(seed=SEEDS, events=EVENTS)
def test_many_answers_are_those_of_the_oracle(way: type[Parquet] | type[Delta], seed: int, events: int) -> None:
    assert judged(seed, events, way()) == []
