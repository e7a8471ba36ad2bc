"""What a config is: a name, a type, a default, what it may hold, and who may change it while the broker runs.

The tables beside this module list every config of Apache Kafka 4.3 in these terms, so parsing, refusing, describing
over the protocol and the reference pages are all the same data. Checks are values, not code, where that is enough;
each gives the sentence that tells the operator how to mend the value.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, Final


class ConfigError(ValueError):
    """A config that is not valid. The message names the key, the value and the fix."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name = name
        self.problem = problem


class ConfigType(IntEnum):
    """Types of configs, with the numbers that DescribeConfigs gives them."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class Importance(Enum):
    """How much an operator should care, in Kafka's words."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Mode(Enum):
    """When a broker config may change: never while running, for one broker, or also for all brokers at once."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Required(Enum):
    """The default of a config that must be set."""

    REQUIRED = "required"


REQUIRED: Final = Required.REQUIRED


class Secret:
    """A password. It prints as hidden; code that needs the secret reads `value`."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "[hidden]"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


JAVA_DOUBLE: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
DURATION: Final = re.compile(r"P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?", re.IGNORECASE)
HTTP_ADDRESS: Final = re.compile(r"https?://[^\s/@]+(/\S*)?")
Check = Callable[[Any], str | None]  # the fault of a value, or None


@dataclass(frozen=True, slots=True)
class Range:
    """A number from `low` to `high`, both included; None is open."""

    low: float | None = None
    high: float | None = None
    also: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        assert self.low is None or self.high is None or self.low <= self.high, f"nothing is in {self}"

    def __call__(self, value: Any) -> str | None:
        if value in self.also:
            return None
        if self.low is not None and value < self.low:
            return f"write {self}"
        if self.high is not None and value > self.high:
            return f"write {self}"
        return None

    def __str__(self) -> str:
        low, high = self.low, self.high
        text = f"{low} or more" if high is None else f"at most {high}" if low is None else f"{low} to {high}"
        return text + "".join(f", or {value}" for value in self.also)


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words, or a list of such words."""

    words: tuple[str, ...]
    fold_case: bool = False

    def __post_init__(self) -> None:
        assert self.words, "one of nothing"
        assert len(set(self.words)) == len(self.words), f"{self} names a word twice"

    def __call__(self, value: Any) -> str | None:
        given = value if isinstance(value, tuple) else (value,)
        words = [word.lower() for word in self.words] if self.fold_case else self.words
        for word in given:
            if (word.lower() if self.fold_case else word) not in words:
                return f"write {self}"
        return None

    def __str__(self) -> str:
        return "one of " + ", ".join(self.words)


def connections_by_address(value: Any) -> str | None:
    """A list of address:count."""
    for part in split_list(value):
        address, _, count = part.rpartition(":")
        if not (address and count.isascii() and count.isdigit()):
            return "write pairs like 10.0.0.1:100,backup.example.org:5 (address:count)"
    return None


def earliest_or_latest(value: Any) -> str | None:
    """Where a share group begins to read: at an end, or some time ago (KIP-932)."""
    word, colon, duration = value.partition(":")
    if value in ("earliest", "latest") or (word == "by_duration" and colon and DURATION.fullmatch(duration)):
        return None
    return "write earliest, latest, or by_duration with an ISO 8601 duration, like by_duration:PT1H"


def http_address(value: Any) -> str | None:
    """An address of HTTP, or nothing."""
    if value == "" or HTTP_ADDRESS.fullmatch(value):
        return None
    return "write where a collector takes metrics, like http://collector:4318/v1/metrics"


def throttled_replicas(value: Any) -> str | None:
    """A list of partition:broker, or the one word * for every replica."""
    if value in ((), ("*",)):
        return None
    for part in value:
        partition, colon, broker = part.partition(":")
        if not (colon and partition.isdigit() and broker.isdigit()):
            return 'write "*", or pairs like 0:1,1:2 (partition:broker)'
    return None


@dataclass(frozen=True, slots=True)
class Definition:
    """One config. `default` is typed; None stands for no value."""

    name: str
    type: ConfigType
    default: Any
    importance: Importance = Importance.MEDIUM
    check: Check | None = None
    mode: Mode = Mode.READ_ONLY
    internal: bool = False
    synonym: str | None = None  # the broker config that stands in for a topic's
    served: bool = False  # broker code reads the config; tests/tidy holds this mark to the code

    def __post_init__(self) -> None:
        assert self.name == self.name.strip() != "", repr(self.name)
        is_given = self.default is not None and self.default is not REQUIRED
        assert not is_given or self.check is None or self.check(self.default) is None, (
            f"{self.name} forbids its default"
        )

    @property
    def sensitive(self) -> bool:
        """Whether the value is never shown."""
        return self.type is ConfigType.PASSWORD

    def parse(self, text: str) -> Any:
        """Parse the text into a typed value. Raises ConfigError."""
        try:
            value = PARSERS[self.type](text)
        except ValueError as error:
            raise ConfigError(self.name, f"{self.shown(text)} {error}") from None
        problem = self.check(value) if self.check is not None else None
        if problem is not None:
            raise ConfigError(self.name, f"{self.shown(text)} is not allowed; {problem}")
        return value

    def without_duplicates(self, text: str) -> str:
        """Return the text of a list with each item once, as Kafka keeps it; any other text as it is."""
        items = split_list(text) if self.type is ConfigType.LIST else ()
        return ",".join(dict.fromkeys(items)) if len(set(items)) < len(items) else text

    def shown(self, text: str) -> str:
        """The value as an error may quote it."""
        return "the given secret" if self.sensitive else f'"{text}"'


def _boolean(text: str) -> bool:
    match text.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("is not a switch; write true or false")


def _whole(bits: int) -> Callable[[str], int]:
    assert bits in (16, 32, 64), bits
    bound = 1 << (bits - 1)

    def parse(text: str) -> int:
        """A whole number that fits in so many bits. Raises ValueError."""
        digits = text.strip()
        # int() takes more than Java does: 1_000 and digits of other scripts.
        if not (digits.isascii() and digits.lstrip("+-").isdigit()):
            raise ValueError("is not a whole number; write digits only, without a unit")
        value = int(digits)
        if not -bound <= value < bound:
            raise ValueError(f"does not fit in {bits} bits; write {-bound} to {bound - 1}")
        return value

    return parse


def _double(text: str) -> float:
    """Read a double as Java does: `nan` and `inf` are no numbers, and a letter may name the type. Raises ValueError."""
    digits = text.strip()
    if digits.lstrip("+-") in ("NaN", "Infinity"):
        return float(digits)
    if JAVA_DOUBLE.fullmatch(digits) is None:
        raise ValueError("is not a number; write it like 0.5")
    return float(digits.rstrip("dDfF"))


def split_list(text: str) -> tuple[str, ...]:
    """The items of a comma separated list; of an empty text, none."""
    return tuple(item.strip() for item in text.split(",")) if text.strip() else ()


PARSERS: Final[Mapping[ConfigType, Callable[[str], Any]]] = {
    ConfigType.UNKNOWN: str,
    ConfigType.BOOLEAN: _boolean,
    ConfigType.STRING: str.strip,
    ConfigType.INT: _whole(32),
    ConfigType.SHORT: _whole(16),
    ConfigType.LONG: _whole(64),
    ConfigType.DOUBLE: _double,
    ConfigType.LIST: split_list,
    ConfigType.CLASS: str.strip,
    ConfigType.PASSWORD: lambda text: Secret(text.strip()),
}


assert PARSERS.keys() == set(ConfigType), "a type has no parser"


def render(value: Any) -> str | None:
    """A typed value in the words of a properties file, as Kafka's tools print it."""
    match value:
        case None | str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return _java_double(value)
        case tuple():
            return ",".join(value)
        case Secret():
            return value.value
    return str(value)


def _java_double(value: float) -> str:
    """Print a double as Java does: plain from 0.001 to ten million, otherwise with an exponent."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    shortest = repr(value).lower()
    digits = shortest.partition("e")[0].replace(".", "").replace("-", "").strip("0") or "0"
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{int(exponent)}"


def by_name(definitions: Iterable[Definition]) -> dict[str, Definition]:
    """Definitions by their names."""
    table: dict[str, Definition] = {}
    for definition in definitions:
        assert definition.name not in table, f"{definition.name} is defined twice"
        table[definition.name] = definition
    return table
