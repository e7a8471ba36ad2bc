"""Java properties: the lines of server.properties as java.util.Properties reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kavka_broker.core.config.definition import ConfigError
from kavka_broker.core.config.properties import format_properties, parse_properties


@pytest.mark.parametrize(
    ("text", "properties"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("# a=b\n! c=d\n\n  e=f", {"e": "f"}),
        ("a=1\\\n   2", {"a": "12"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("a=\\t\\u00e4\\q", {"a": "\täq"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=b\\", {"a": "b"}),
    ],
)
def test_a_file_is_read_as_java_reads_it(text: str, properties: dict[str, str]) -> None:
    assert parse_properties(text) == properties


def test_a_broken_escape_is_refused() -> None:
    with pytest.raises(ConfigError, match="four hexadecimal digits"):
        parse_properties("a=\\u12")


def test_a_broken_escape_is_told_by_its_key_without_the_value() -> None:
    with pytest.raises(ConfigError) as found:
        parse_properties('b=1\nsasl.jaas.config=hunter2 password\\uhunter2";\nc=2')
    assert str(found.value).startswith("sasl.jaas.config: a \\u begins no escape; ")
    assert "hunt" not in str(found.value)
    with pytest.raises(ConfigError, match=r"a\\uz: a \\u begins no escape"):
        parse_properties("a\\uz=hunter2")


@given(st.dictionaries(st.text(min_size=1).filter(lambda key: key.strip() == key), st.text()))
def test_what_is_written_is_read_back(properties: dict[str, str]) -> None:
    plain = {
        key: value
        for key, value in properties.items()
        if key.isprintable() and value.isprintable() and not any(0xD800 <= ord(one) < 0xE000 for one in key + value)
    }
    assert parse_properties(format_properties(plain)) == plain
