"""Answers of a registry that is none, or a broken one: an error with a reason, and records are printed all the same."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import confluent_kafka
import pytest
from aiohttp import web

from kavka_cli import main
from kavka_cli.schema_registry import registry_client
from kavka_cli.schema_registry.registry_client import RegistryClient, RegistryError
from kavka_pytest.in_process import KafkaInProcess
from tests.support.commands import run_here
from tests.support.web import served

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def registry(answer: Answer) -> web.Application:
    pages = web.Application()
    pages.add_routes([web.get("/{rest:.*}", answer)])
    return pages


def saying(text: str, status: int = 200, **headers: str) -> Answer:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text, status=status, headers=headers)

    return answer


async def references_for_ever(request: web.Request) -> web.Response:
    number = int(request.path.rpartition("/")[2])
    named = {"name": f"n{number}", "subject": "s", "version": number + 1}
    return web.json_response({"schema": "{}", "schemaType": "JSON", "references": [named]})


ELSEWHERE = {"Location": "http://169.254.169.254/"}
BAD = [
    pytest.param(saying("oops", 500), "answers 500", id="an error"),
    pytest.param(saying("{}", 401), "answers 401", id="no login"),
    pytest.param(saying("no", 302, **ELSEWHERE), "answers 302", id="a redirect"),
    pytest.param(saying("<html>"), "not JSON; is it a schema registry", id="a page"),
    pytest.param(saying("[" * 100_000), "not JSON; is it a schema registry", id="deep JSON"),
    pytest.param(saying("[]"), "not an object", id="a list"),
    pytest.param(saying("{}"), "has no schema", id="no schema"),
    pytest.param(saying('{"schema": 1}'), "has no schema", id="a number"),
    pytest.param(saying('{"schema": "{}", "references": [{}]}'), "without name, subject and version", id="reference"),
    pytest.param(references_for_ever, "more than 64 references", id="endless references"),
    pytest.param(saying("x" * 100), "is larger than", id="large"),
]


@pytest.mark.parametrize(("answer", "words"), BAD)
def test_a_bad_answer_is_an_error_with_a_reason(answer: Answer, words: str, request: pytest.FixtureRequest) -> None:
    bytes_max = 99 if "large" in request.node.name else registry_client.ANSWER_BYTES_MAX
    with served(registry(answer)) as url, pytest.raises(RegistryError) as caught:
        RegistryClient(url, answer_bytes_max=bytes_max).schema(1)
    assert words in str(caught.value)


def test_an_error_about_one_schema_does_not_hold_up_the_others() -> None:
    async def answer(asked: web.Request) -> web.Response:
        if asked.path.endswith("/8"):
            return web.Response(status=500)
        return web.json_response({"schema": "{}", "schemaType": "JSON"})

    with served(registry(answer)) as url:
        client = RegistryClient(url)
        with pytest.raises(RegistryError, match="answers 500"):
            client.schema(8)
        assert client.schema(7).kind == "JSON"


def test_a_registry_that_answers_by_drops_is_given_up() -> None:
    left = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        dropping = web.StreamResponse()
        await dropping.prepare(request)
        await left.wait()
        return dropping

    with served(registry(answer)) as url, pytest.raises(RegistryError, match="does not answer: not within 0 s"):
        RegistryClient(url, answer_seconds_max=0.2).schema(1)


def test_a_login_is_sent() -> None:
    async def answer(asked: web.Request) -> web.Response:
        return web.json_response({"schema": asked.headers.get("Authorization"), "schemaType": "JSON"})

    with served(registry(answer)) as url:
        found = RegistryClient(url.replace("http://", "http://ada:s%3Aecret@")).schema(1)
    assert found.text == "Basic YWRhOnM6ZWNyZXQ="


def test_records_are_printed_whatever_becomes_of_the_registry(tmp_path: Path) -> None:
    with KafkaInProcess(tmp_path) as kafka, served(registry(saying("oops", 503))) as url:
        topic = kafka.topic()
        producer = confluent_kafka.Producer({"bootstrap.servers": str(kafka)})
        for number in range(3):
            producer.produce(topic, b"\0\0\0\0" + bytes([number + 1]) + b"\xff")
        assert producer.flush(60) == 0
        code, said = run_here(main, "consume", "--bootstrap", str(kafka), "--topic", topic, "--registry", url)
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        assert code == 0
        assert [line["value"]["base64"] for line in lines] == ["AAAAAAH/", "AAAAAAL/", "AAAAAAP/"]
        assert {line["valueProblem"] for line in lines} == {f"{url.rstrip('/')} answers 503 Service Unavailable"}
        assert said.count("not decoded: ") == 1
