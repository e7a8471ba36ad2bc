"""Values of configs: what is read, what is refused and in which words, and how they are written."""

import pytest

from kavka_broker.core.config.broker import KEYS
from kavka_broker.core.config.definition import (
    REQUIRED,
    ConfigError,
    ConfigType,
    Definition,
    OneOf,
    Range,
    Secret,
    by_name,
    render,
)
from kavka_broker.core.config.topic_table import TOPIC_KEYS


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " TRUE ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, " -1 ", -1),
        (ConfigType.LONG, "9223372036854775807", 2**63 - 1),
        (ConfigType.SHORT, "-32768", -(2**15)),
        (ConfigType.DOUBLE, "0.5", 0.5),
        (ConfigType.LIST, " a , b ", ("a", "b")),
        (ConfigType.LIST, "", ()),
        (ConfigType.STRING, " x ", "x"),
        (ConfigType.PASSWORD, "sesame", Secret("sesame")),
    ],
)
def test_a_value_is_read_by_its_type(kind: ConfigType, text: str, value: object) -> None:
    assert Definition("some.key", kind, None).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        (ConfigType.BOOLEAN, "yes", 'some.key: "yes" is not a switch; write true or false'),
        (ConfigType.INT, "ten", 'some.key: "ten" is not a whole number; write digits only, without a unit'),
        (ConfigType.INT, "1_000", 'some.key: "1_000" is not a whole number; write digits only, without a unit'),
        (ConfigType.INT, "٣", 'some.key: "٣" is not a whole number; write digits only, without a unit'),
        (ConfigType.SHORT, "40000", 'some.key: "40000" does not fit in 16 bits; write -32768 to 32767'),
        (ConfigType.SHORT, "32768", 'some.key: "32768" does not fit in 16 bits; write -32768 to 32767'),
        (ConfigType.SHORT, "-32769", 'some.key: "-32769" does not fit in 16 bits; write -32768 to 32767'),
        (ConfigType.DOUBLE, "much", 'some.key: "much" is not a number; write it like 0.5'),
    ],
)
def test_a_refusal_names_the_key_the_value_and_the_fix(kind: ConfigType, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Definition("some.key", kind, None).parse(text)
    assert str(refusal.value) == words
    assert f"{refusal.value.name}: {refusal.value.problem}" == words


def test_a_table_is_by_name() -> None:
    definition = Definition("some.key", ConfigType.INT, 1)
    assert by_name((definition,)) == {"some.key": definition}


@pytest.mark.parametrize(
    ("check", "text", "words"),
    [
        (Range(1), "0", 'some.key: "0" is not allowed; write 1 or more'),
        (Range(1, 9, also=(-1,)), "0", 'some.key: "0" is not allowed; write 1 to 9, or -1'),
        (Range(None, 9), "10", 'some.key: "10" is not allowed; write at most 9'),
    ],
)
def test_a_number_out_of_range_is_refused_with_the_range(check: Range, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        Definition("some.key", ConfigType.INT, None, check=check).parse(text)
    assert str(refusal.value) == words


def test_a_number_beside_the_range_may_be_allowed() -> None:
    assert Definition("some.key", ConfigType.INT, None, check=Range(1, 9, also=(-1,))).parse("-1") == -1


def test_a_word_is_one_of_those_known() -> None:
    definition = Definition("some.key", ConfigType.LIST, (), check=OneOf(("delete", "compact")))
    assert definition.parse("compact,delete") == ("compact", "delete")
    with pytest.raises(ConfigError, match="write one of delete, compact"):
        definition.parse("delete,shrink")


def test_a_secret_is_never_shown() -> None:
    secret = Definition("ssl.key.password", ConfigType.PASSWORD, None).parse("sesame")
    assert "sesame" not in repr(secret)
    with pytest.raises(ConfigError) as refusal:
        Definition("pass", ConfigType.PASSWORD, None, check=lambda _: "write another").parse("sesame")
    assert "sesame" not in str(refusal.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        ("lz4", "lz4"),
        (True, "true"),
        (0.5, "0.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (10000000.0, "1.0E7"),
        (-0.001, "-0.001"),
        (0.0, "0.0"),
        (Secret("sesame"), "sesame"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (2147483647.0, "2.147483647E9"),
        (("a", "b"), "a,b"),
        (7, "7"),
    ],
)
def test_values_are_written_as_kafka_writes_them(value: object, text: str | None) -> None:
    assert render(value) == text


@pytest.mark.parametrize("name", sorted(KEYS))
def test_every_default_of_a_broker_is_a_value_that_would_be_taken(name: str) -> None:
    definition = KEYS[name]
    if definition.default is REQUIRED:
        return
    text = render(definition.default)
    assert text is None or definition.parse(text) == definition.default


@pytest.mark.parametrize("name", sorted(TOPIC_KEYS))
def test_every_default_of_a_topic_is_a_value_that_would_be_taken(name: str) -> None:
    definition = TOPIC_KEYS[name]
    text = render(definition.default)
    assert text is None or definition.parse(text) == definition.default


def test_a_topic_key_and_its_stand_in_agree() -> None:
    for definition in TOPIC_KEYS.values():
        if definition.synonym is not None:
            assert KEYS[definition.synonym].type in (definition.type, ConfigType.LONG, ConfigType.INT)
