"""An answer whose elements are encoded part by part has the bytes that it would have in one piece."""

from copy import deepcopy
from typing import Any

import pytest

from kavka_broker.dispatch.handlers import load
from kavka_broker.protocol.compiler.layout import of_message
from kavka_broker.protocol.encoded_elements import JOINED_BYTES_MIN, EncodedElements, encode_elements
from kavka_broker.protocol.framing import encode_response_parts
from kavka_broker.request.registry import Api
from kavka_broker.request.split_requests import NAMING, Each
from tests.property.protocol.building import Seeded, build

LISTING = [(api, each) for api in load().values() if api.lists for each in api.each]
SEEDS = 12


def name_of(case: tuple[Api, Each]) -> str:
    return f"{case[0].name}-{case[1].answered}"


def has(api: Api, version: int, each: Each) -> bool:
    """Whether answers of this version have the array."""
    layout = of_message(api.response, version)
    for name in each.answered_path:
        place = next((place for place in layout.places if place.attribute == name), None)
        if place is None:
            return False
        layout = layout.nested(place.element.type)
    return True


def parts_of(answer: Any, path: tuple[str, ...]) -> list[Any]:
    """Answers with one element of the outermost array each; those of one name would become one."""
    parts = []
    for number, item in enumerate(getattr(answer, path[0])):
        if path[1:]:
            setattr(item, next(slot for slot in item.__match_args__ if slot in NAMING), str(number))
        part = deepcopy(answer)
        setattr(part, path[0], [deepcopy(item)])
        parts.append(part)
    return parts


@pytest.mark.parametrize("case", LISTING, ids=name_of)
def test_parts_that_are_encoded_apart_are_the_whole(case: tuple[Api, Each]) -> None:
    api, each = case
    path, joined = each.answered_path, 0
    versions = [version for version in range(api.versions[0], api.versions[1] + 1) if has(api, version, each)]
    assert versions
    for version in versions:
        for seed in range(SEEDS):
            answer: Any = build(api.response, version, Seeded(seed))
            parts = parts_of(answer, path)
            if len(parts) < 2:
                continue
            for part in parts:
                encode_elements(part, version, path)
            whole, *rest = parts
            for part in rest:
                each.join(whole, part)
            expected = b"".join(encode_response_parts(answer, version, 7))
            assert b"".join(encode_response_parts(whole, version, 7, path)) == expected
            joined += 1
    assert joined


def test_elements_know_their_number() -> None:
    elements = EncodedElements(2, b"ab")
    elements += EncodedElements(0, b"")
    elements += EncodedElements(1, b"c")
    assert (len(elements), elements.pieces, elements.size_bytes) == (3, [b"abc"], 3)
    elements += EncodedElements(1, bytes(JOINED_BYTES_MIN))
    elements += EncodedElements(1, b"d")
    assert [len(piece) for piece in elements.pieces] == [3 + JOINED_BYTES_MIN, 1]
