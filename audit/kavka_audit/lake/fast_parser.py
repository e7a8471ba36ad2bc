"""Rows of events in the form in which a broker writes them, found by regular expressions.

`rows.row_of` says what the row of any record is. It parses the JSON and looks at every field, which takes most of a
run's time; but nearly all records have one of two forms. A record whose headers and value match an expression as a
whole becomes a row from the expression's groups, which have the names of columns. Any other goes to `row_of`.

The expressions are strict, so that a match leaves no doubt: fields stand in a broker's order, numbers are whole, have
at most 18 digits and no leading zero, texts are printable ASCII without an escape, and each length in the headers is
that of its text. A group is then valid JSON by itself, and stands in the line of the row as it stood in the record.
"""

import json
import re
from typing import Any, Final

from kavka_audit.lake.event_schema import VERSION, text_of
from kavka_audit.lake.rows import AHEAD_MS_MAX, OUTCOMES, VALUE_BYTES_MAX, Packed
from kavka_broker.core.audit.cloud_events import SOURCE_PREFIX, TYPE_PREFIX

NUMBER: Final = "(?:0|[1-9][0-9]{0,17})"
LETTERS: Final = r"[ !#-\[\]-~]*"
MARKS: Final = {
    "<number>": NUMBER,
    "<decimals>": NUMBER + r"(?:\.[0-9]{1,17})?",
    "<text>": f'"{LETTERS}"',
    "<letters>": LETTERS,
    "<names>": rf'\{{"{LETTERS}":(?:null|"{LETTERS}")(?:,"{LETTERS}":(?:null|"{LETTERS}"))*\}}',
    "<version>": re.escape(f'"{VERSION}"'),
    "<id>": "[0-9-]+",
    "<chain>": "(?P<node>0|[1-9][0-9]{0,8})-[0-9]{1,20}",
    "<digest>": "[0-9a-f]{64}",
    "<outcome>": f"(?:{'|'.join(map(str, OUTCOMES))})",
    "(": "(?:",
    **{sign: sign for sign in ")|?"},
}
"""What stands in a form for values, and for parts that may be missing or are one of two."""


def pattern(form: str) -> str:
    """Return the regular expression of a form: JSON with marks. `<number bytes>` is a number for the column `bytes`."""
    parts = re.split(r"(<[^>]*>|[()|?])", "".join(line.strip() for line in form.splitlines()))
    return "".join(re.escape(part) if index % 2 == 0 else _marked(part) for index, part in enumerate(parts))


def _marked(mark: str) -> str:
    kind, _, column = mark.strip("<>").partition(" ")
    return f"(?P<{column}>{MARKS[f'<{kind}>']})" if column else MARKS[mark]


ENDPOINT: Final = '"src_endpoint":{("ip":<text address>|"name":<text>)},'
COMMON: Final = """
    "count":<number times>,"time":<number>,"start_time":<number start_ms>,"end_time":<number end_ms>,
    "metadata":{"version":<version>,"uid":<text>,"product":{"name":<text>,"vendor_name":<text>},"profiles":[(<text>)?]}}
"""
ACTIVITY: Final = f"""
    {{"category_uid":6,"class_uid":6003,
    "activity_id":<number>,"type_uid":<number>,"severity_id":<number>,"status_id":<number>,
    "actor":{{"user":{{"name":"<letters user>","type":"<letters user_type>","type_id":<number>}}
    (,"app_name":<text client_id>)?}},
    "api":{{"operation":<text operation>,"service":{{"name":<text>}}}},{ENDPOINT}
    ("status_detail":<text>,)?"action_id":<number>,"disposition_id":<outcome disposition>,
    "resources":[{{"type":<text resource_type>,"name":<text resource>
"""
USE: Final = f"""
    {ACTIVITY}}}],"unmapped":{{"kafka":{{"bytes":<number bytes>(,"records":<number records>)?}}}},{COMMON}
"""
CHANGE: Final = """
    (,"data":{"key":<text config_key>,"value":(null|<text config_value>),"previous":(null|<text config_previous>)})?}],
"""
OTHER: Final = f"""
    {ACTIVITY}{CHANGE}
    ("unmapped":{{"kafka":{{"quota_type":<text quota_type>,"quota_entity":(null|<names quota_entity>),
    "quota_limit":<decimals quota_limit>,
    "throttle_time_ms":<number throttle_time_ms>,"throttle_time_ms_max":<number throttle_time_ms_max>}}}},)?{COMMON}
"""
LOGIN: Final = f"""
    {{"category_uid":3,"class_uid":3002,
    "activity_id":<number>,"type_uid":<number>,"severity_id":<number>,"status_id":<number status>,
    "auth_protocol":<text>,"auth_protocol_id":<number>,"user":{{"name":"<letters user>","type_id":<number>}},
    "service":{{"name":"(kafka listener )?<letters listener>"}},{ENDPOINT}{COMMON}
"""


def sized(words: str) -> str:
    """Return the pattern of a text behind its length, which is a zigzag varint: twice the number, in one byte here."""
    assert len(words) < 64, words
    return re.escape(chr(2 * len(words)) + words)


def header(name: str, text: str, size_max: int, following: str) -> str:
    """Return the pattern of a header whose text varies: its length is known by where the name `following` begins."""
    sizes = (rf"{re.escape(chr(2 * size))}(?=[!-~]{{{size}}}{sized(following)})" for size in range(1, size_max + 1))
    return f"{sized(name)}(?:{'|'.join(sizes)}){text}"


def digest(name: str) -> str:
    """Return the pattern of a header with a hash, whose length of 64 takes two bytes."""
    return sized(name) + "\x80\x01" + MARKS["<digest>"]


HEADER_FORMS: Final = {
    "ce_specversion": "1.0",
    "ce_id": "<id>",
    "ce_source": f"{SOURCE_PREFIX}<chain source>",
    "ce_type": f"{TYPE_PREFIX}event",
    "ce_sequence": "<number sequence>",
    "ce_chaintime": "<number written_ms>",
    "ce_chainlost": "<number lost>",
    "ce_chainprevious": "<digest>",
    "ce_chainhash": "<digest>",
    "content-type": "application/json",
}
"""The headers of a broker's event in their order, and the form of each one's text. An event has no signature."""
NUMBER_SIZE_MAX: Final = 18
SIZES_MAX: Final = {"ce_id": 50, "ce_source": 36}
"""The longest text of headers whose text varies and is no number."""


def _packed(name: str, following: str) -> str:
    """Return the pattern of a header as it is packed, before one of the name `following`."""
    form = HEADER_FORMS[name]
    if form == "<digest>":
        return digest(name)
    if "<" not in form:
        return sized(name) + sized(form)
    return header(name, pattern(form), SIZES_MAX.get(name, NUMBER_SIZE_MAX), following)


HEADERS: Final = re.compile(
    "\x14"  # their number: ten
    + "".join(
        _packed(name, following) for name, following in zip(HEADER_FORMS, [*[*HEADER_FORMS][1:], ""], strict=True)
    )
)
"""The headers of a broker's event, as they are packed in a record."""
PLACE: Final = (
    '{"partition":%(partition)d,"offset":%(offset)d,"kind":"event","source":"%(source)s","node":%(node)s,'
    '"sequence":%(sequence)s,"written_ms":%(written_ms)s,"lost":%(lost)s,"start_ms":%(start_ms)s,"end_ms":%(end_ms)s,'
    '"times":%(times)s,"outcome":"%(outcome)s","address":%(address)s,'
)
ACTIVITY_ROW: Final = PLACE + (
    '"class_uid":6003,"operation":%(operation)s,"principal":"%(user_type)s:%(user)s","client_id":%(client_id)s,'
    '"resource_type":%(resource_type)s,"resource":%(resource)s,'
)
USE_ROW: Final = ACTIVITY_ROW + '"bytes":%(bytes)s,"records":%(records)s}'
OTHER_ROW: Final = ACTIVITY_ROW + (
    '"quota_type":%(quota_type)s,"quota_entity":%(quota_entity)s,"quota_limit":%(quota_limit)s,'
    '"throttle_time_ms":%(throttle_time_ms)s,"throttle_time_ms_max":%(throttle_time_ms_max)s,'
    '"config_key":%(config_key)s,"config_value":%(config_value)s,"config_previous":%(config_previous)s}'
)
LOGIN_ROW: Final = PLACE + (
    '"class_uid":3002,"operation":"LOGIN","principal":%(principal)s,"resource_type":"listener",'
    '"resource":"%(listener)s"}'
)
Fields = dict[str, Any]


def _derive_activity(fields: Fields) -> None:
    fields["outcome"] = OUTCOMES[int(fields["disposition"])]


def _derive_other(fields: Fields) -> None:
    _derive_activity(fields)
    if (entity := fields["quota_entity"]) != "null":
        fields["quota_entity"] = json.dumps(text_of(json.loads(entity)))


def _derive_login(fields: Fields) -> None:
    is_known = int(fields["status"]) == 1
    fields["outcome"] = "allowed" if is_known else "denied"
    fields["principal"] = f'"User:{fields["user"]}"' if is_known else "null"


FORMS: Final = (
    (re.compile(pattern(USE)), USE_ROW, _derive_activity),
    (re.compile(pattern(OTHER)), OTHER_ROW, _derive_other),
    (re.compile(pattern(LOGIN)), LOGIN_ROW, _derive_login),
)
"""By the form of an event: the line of its row, and what makes the columns that are no group."""


def usual_line(record: Packed) -> str | None:
    """Return the row of an event in a usual form, as a line of JSON; None where the record has another form."""
    value = record.value or b""
    if len(value) > VALUE_BYTES_MAX or not value.isascii():
        return None
    headers, event = HEADERS.fullmatch(record.packed_headers.decode("latin-1")), value.decode("ascii")
    if headers is None:
        return None
    for form, row, derive in FORMS:
        if (found := form.fullmatch(event)) is not None:
            fields: Fields = found.groupdict("null")
            fields |= headers.groupdict()
            if not _is_in_time(fields):
                return None
            derive(fields)
            fields["partition"], fields["offset"] = record.partition, record.offset
            return row % fields
    return None


def _is_in_time(fields: Fields) -> bool:
    end_ms = int(fields["end_ms"])
    return int(fields["start_ms"]) <= end_ms <= int(fields["written_ms"]) + AHEAD_MS_MAX
