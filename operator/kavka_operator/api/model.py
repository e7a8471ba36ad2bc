"""Models of resources: pydantic's, with fields in camelCase that are read strictly, and rules that hold in both worlds.

A model reads itself from the plain values of YAML or JSON and writes itself back; the schema in a CRD follows from it
(`tools/definitions/schema.py`). Nothing is converted silently: `"3"` is no number and 3.0 no whole one.

A rule between fields is written once, as a `Rule`: a CEL expression for the API server and the same rule as a Python
function for resource files. Both give the same message. The tests run a table of good and bad objects against the
Python half; the API server's tests run the same table against the CEL half.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema
from pydantic_core.core_schema import no_info_after_validator_function

from kavka_operator.api.error_messages import shown
from kavka_operator.api.validation_errors import FieldError, InvalidError, faults_of


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that a valid object keeps: `cel` for the API server, `holds` for us. `path` is where to complain.

    `told` says it of the object at hand, where that is shorter than what can be said of all.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool]
    path: str = ""
    told: Callable[[Any], str] | None = None


@dataclass(frozen=True, slots=True)
class Transition:
    """A rule between an object and what it was before."""

    cel: str
    message: str
    holds: Callable[[Any, Any], bool]
    path: str = ""


Item = TypeVar("Item")

ListOf = Annotated[tuple[Item, ...], Strict(False)]
"""A list in a resource, which a model holds as a tuple; strictly, pydantic would take no list for one."""


@dataclass(frozen=True, slots=True)
class Unique:
    """Each item of a list stands in it once, or of `key`, a field of its items, each value."""

    key: str | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return no_info_after_validator_function(self._once, handler(source))

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        merged: dict[str, Any] = {"x-kubernetes-list-type": "set"}
        if self.key is not None:
            merged = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [self.key]}
        return {**handler(core), **merged}

    def _once(self, items: tuple[Any, ...]) -> tuple[Any, ...]:
        """The items. Raises ValueError where one stands twice."""
        seen = set()
        for item in items:
            what = item if self.key is None else getattr(item, self.key)
            if what in seen:
                raise ValueError(f"has {shown(what)} twice; keep one")
            seen.add(what)
        return items


class Model(BaseModel):
    """A part of a resource: no unknown fields, no silent conversions, never changed in place.

    Code makes one by the names of its attributes; only `decode` reads the names of fields in a resource.
    """

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        extra="forbid",
        frozen=True,
        strict=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()
    transitions: ClassVar[tuple[Transition, ...]] = ()

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        """The model. Raises FieldError with the first rule that does not hold."""
        for rule in self.rules:
            if not rule.holds(self):
                raise FieldError(rule.message if rule.told is None else rule.told(self), rule.path)
        return self

    @classmethod
    def decode(cls, value: object, *, is_strict: bool = True) -> Self:
        """The model of plain values; unknown fields are left out unless `is_strict`. Raises InvalidError."""
        try:
            return cls.model_validate(value, extra="forbid" if is_strict else "ignore", by_alias=True, by_name=False)
        except ValidationError as error:
            raise InvalidError(faults_of(error, cls)) from None

    def replaced(self, changes: Mapping[str, Any]) -> Self:
        """A copy with other values of some fields, which are not read again."""
        assert changes.keys() <= type(self).model_fields.keys(), changes
        return self.model_copy(update=changes)

    def forbidden_changes(self, old: Self) -> Iterator[Transition]:
        """The rules that a change from `old` to this resource would break."""
        return (transition for transition in self.transitions if not transition.holds(self, old))

    def to_dict(self) -> dict[str, Any]:
        """The map for a resource: keys in camelCase, without fields that are unset."""
        return self.model_dump(by_alias=True, exclude_none=True, mode="json")
