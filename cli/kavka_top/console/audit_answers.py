"""Reads the answers of `kavka audit run` from its directory or S3 store: the same questions, in the same words.

Nothing is computed here. What a run has written is shown, with the moment at which it did. Of a store the answers are
copied into a directory, and nothing of the trail.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from kavka_operator.optional_libraries import lacking
from kavka_operator.web_page.documents import UNKNOWN, Document, facts, sheet_document, shortened
from kavka_operator.web_page.sheet import Cell, Column, Row, Sheet, Tone

if TYPE_CHECKING:
    from kavka_audit.store.answers_copy import AnswersCopy

CLAIM: Final = "lake.json"
ROWS_MAX: Final = 1_000
NO_LAKE: Final = (
    "No directory of answers was named. `kavka audit run --directory DIR` makes one, and `kavka console --audit DIR`"
    " shows it here; both take s3://BUCKET/PREFIX too."
)
QUESTIONS: Final = (
    Column("QUESTION", is_flexible=True, is_sorting=False),
    Column("ANSWER", is_flexible=True, is_sorting=False),
    Column("ROWS", is_number=True, is_sorting=False),
)
RANK: Final = Column("#", is_number=True, is_ascending=True)
"""The place of a row in its answer, which is in an order that says something."""


class UnreadableAnswersError(Exception):
    """A directory that is no lake, or whose answers cannot be read; the message says why."""


class NoSuchQuestionError(Exception):
    """A question that is none, or that no run has answered yet."""


@dataclass(frozen=True, slots=True)
class AuditAnswers:
    """The answers in a directory, of the cluster with this id; `copy` brings them there where they are in a store."""

    directory: Path
    cluster_id: str
    copy: "AnswersCopy | None" = None

    @property
    def place(self) -> str:
        """Return where the answers are, in words."""
        return str(self.directory) if self.copy is None else self.copy.name

    def all(self, link: Sequence[str]) -> Document:
        """Return the questions with their answers in a line each; rows lead to `link` and the name of the question.
        Raises UnreadableAnswersError.
        """
        from kavka_audit.lake.directory import Lake
        from kavka_audit.report.answers import ORDER, answer
        from kavka_audit.report.number_format import moment
        from kavka_audit.report.previous import read_previous

        self._bring()
        tables = {name: self._table(name) for name in ORDER}
        rows = tuple(
            Row(
                name,
                (
                    Cell(table.question.title, at, Tone.NAME),
                    Cell(answer(table), None),
                    Cell(f"{table.count:,}", table.count),
                ),
            )
            if table is not None
            else Row(name, (Cell(name, at), Cell("not answered yet", None, Tone.FAINT), Cell("", None)))
            for at, (name, table) in enumerate(tables.items())
        )
        asked = read_previous(Lake(self.directory)).now_ms
        links = {name: (*link, name) for name, table in tables.items() if table is not None}
        shown = sheet_document(Sheet("answers", QUESTIONS, rows, 0), "Answers of the audit trail", links)
        asked_at = moment(asked) if asked else UNKNOWN
        return {
            "facts": facts([("Answered at", asked_at, ""), ("Directory", self.place, "")]),
            "sheets": [shown],
        }

    def one(self, name: str) -> Document:
        """Return the rows that answer a question. Raises NoSuchQuestionError and UnreadableAnswersError."""
        from kavka_audit.report.answers import ORDER, answer
        from kavka_audit.report.number_format import cell, heading

        self._bring()
        table = self._table(name) if name in ORDER else None
        if table is None:
            raise NoSuchQuestionError(name)
        numbers = [_is_number(table.rows, at) for at in range(len(table.columns))]
        columns = tuple(
            Column(heading(column), is_number=is_number, is_flexible=not is_number)
            for column, is_number in zip(table.columns, numbers, strict=True)
        )
        rows = tuple(
            Row(
                f"{at:06}",
                (
                    Cell(str(at + 1), at, Tone.FAINT),
                    *(
                        Cell(cell(column, value), value if is_number else cell(column, value).lower())
                        for column, value, is_number in zip(table.columns, row, numbers, strict=True)
                    ),
                ),
            )
            for at, row in enumerate(table.rows)
        )
        more = f" The first {len(rows):,} of {table.count:,} rows." if table.count > len(rows) else ""
        sheet = Sheet(f"answer-{name}", (RANK, *columns), rows, 0, table.question.explanation + more)
        return {
            "title": table.question.title,
            "facts": facts([("Answer", shortened(answer(table)), "")]),
            "sheets": [sheet_document(sheet, "Rows")],
        }

    def _bring(self) -> None:
        """Copy what is new in the store. Raises UnreadableAnswersError."""
        from kavka_audit.lake.directory import LakeError

        if self.copy is None:
            return
        try:
            self.copy.refresh()
        except LakeError as error:
            raise UnreadableAnswersError(str(error)) from error

    def _table(self, name: str) -> Any:
        """Return the answer to a question; None where no run has answered it yet. Raises UnreadableAnswersError."""
        from kavka_audit.lake.directory import Lake, LakeError
        from kavka_audit.report.stored_answers import stored_answer

        try:
            return stored_answer(Lake(self.directory), name, ROWS_MAX)
        except LakeError as error:
            raise UnreadableAnswersError(str(error)) from error


def answers_in(directory: Path) -> AuditAnswers:
    """Return the answers in a directory. Raises UnreadableAnswersError where no run has written it, or what reads them
    is not installed.
    """
    if lack := lacking("kavka console --audit", "audit", "kavka_audit", "duckdb"):
        raise UnreadableAnswersError(lack)
    try:
        claim = (directory / CLAIM).read_bytes()
    except OSError:
        claim = b""
    return AuditAnswers(directory, _cluster_id(claim, str(directory)))


@contextmanager
def answers_at(address: str) -> Iterator[AuditAnswers]:
    """Give the answers in an S3 store meanwhile, by a copy in a directory of its own. Endpoint, region and credentials
    are those of the environment. Raises UnreadableAnswersError.
    """
    if lack := lacking("kavka console --audit s3://...", "audit,s3", "kavka_audit", "duckdb", "obstore"):
        raise UnreadableAnswersError(lack)
    from kavka_audit.lake.directory import LakeError
    from kavka_audit.report.answers import ORDER
    from kavka_audit.store.address import address_of
    from kavka_audit.store.answers_copy import AnswersCopy
    from kavka_audit.store.s3 import S3

    with TemporaryDirectory(prefix="kavka-console-") as name:
        try:
            found = address_of(address, os.environ)
            copy = AnswersCopy(S3(found), str(found), Path(name), ORDER)
            claim = copy.claim()
        except LakeError as error:
            raise UnreadableAnswersError(f"--audit: {str(error).removeprefix('--directory: ')}") from error
        yield AuditAnswers(copy.directory, _cluster_id(claim, copy.name), copy)


def _cluster_id(claim: bytes, name: str) -> str:
    """Return the id of the cluster whose lake this is. Raises UnreadableAnswersError."""
    try:
        return str(json.loads(claim)["cluster_id"])
    except (ValueError, LookupError, TypeError) as error:
        raise UnreadableAnswersError(
            f"--audit: {name} is not a directory of `kavka audit run`: it has no {CLAIM} that says whose it is"
        ) from error


def no_answers(cluster_id: str, known: Sequence[AuditAnswers]) -> Document:
    """Return the view of a cluster without answers."""
    note = NO_LAKE
    if known:
        held = ", ".join(f"{answers.place} of cluster {answers.cluster_id}" for answers in known)
        note = f"No directory holds answers of this cluster, whose id is {cluster_id or UNKNOWN}: {held}."
    return {"facts": [], "sheets": [sheet_document(Sheet("answers", QUESTIONS, (), 0, note), "Audit")]}


def _is_number(rows: Sequence[Sequence[Any]], at: int) -> bool:
    held = [row[at] for row in rows if row[at] is not None]
    return bool(held) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in held)
