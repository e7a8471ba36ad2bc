"""From pydantic's JSON schema of a model to a structural schema, as an API server takes it.

Structural is: every part where it stands, without references; nothing beside that a field may be null, as one that is
null is left out; no word about unknown fields, which are pruned, or refused where a client asks for it. Rules stand
beside the fields as `x-kubernetes-validations`, and an exclusive bound is spelled as OpenAPI 3.0 has it.
"""

from copy import deepcopy
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema, to_jsonable_python

from kavka_operator.api.model import Model, Rule, Transition

Schema = dict[str, Any]

LEFT_OUT = "x-left-out"
"""Marks in a schema an object that is nothing where it is left out: the defaults of its fields do not bring it."""

DROPPED = ("title", "$defs")


def schema_of(model: type[BaseModel]) -> Schema:
    """The structural schema of a model, made afresh."""
    return model.model_json_schema(by_alias=True, schema_generator=StructuralSchema)


def rule_schema(rule: Rule | Transition) -> dict[str, str]:
    """A rule as it stands in a CRD."""
    place = {"fieldPath": f".{rule.path.split('.')[0]}"} if rule.path else {}
    return {"rule": rule.cel, "message": rule.message, "reason": "FieldValueInvalid", **place}


class StructuralSchema(GenerateJsonSchema):
    """Writes structural schemas."""

    def generate(self, schema: core_schema.CoreSchema, mode: JsonSchemaMode = "validation") -> JsonSchemaValue:
        """The schema, with all that it refers to in its place."""
        whole = super().generate(schema, mode)
        return _structural(whole, whole.get("$defs", {}))

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        """The schema of what the value is where it is something."""
        return self.generate_inner(schema["schema"])

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """The schema of a model, with its rules."""
        found, model = super().model_schema(schema), schema["cls"]
        assert issubclass(model, Model), model
        rules: tuple[Rule | Transition, ...] = (*model.rules, *model.transitions)
        if rules:
            found["x-kubernetes-validations"] = [rule_schema(rule) for rule in rules]
        return found

    def encode_default(self, dft: Any) -> Any:
        """A default as it stands in a resource."""
        return to_jsonable_python(dft, by_alias=True, exclude_none=True)


def _structural(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """A schema and all below it."""
    if "$ref" in schema:
        target = definitions[schema["$ref"].removeprefix("#/$defs/")]
        return _structural({**target, **{key: part for key, part in schema.items() if key != "$ref"}}, definitions)
    result = {key: deepcopy(part) for key, part in schema.items() if key not in {*DROPPED, "properties"}}
    if not result.get("additionalProperties"):
        result.pop("additionalProperties", None)
    for key in ("items", "additionalProperties"):
        if isinstance(result.get(key), dict):
            result[key] = _structural(result[key], definitions)
    if "properties" in schema:
        result["properties"] = {name: _structural(part, definitions) for name, part in schema["properties"].items()}
    _spell_bounds(result)
    _spell_default(result)
    return result


def _spell_bounds(schema: Schema) -> None:
    """OpenAPI 3.0 says `exclusiveMinimum` with a boolean beside `minimum`, and knows no `const`."""
    if "exclusiveMinimum" in schema:
        schema["minimum"], schema["exclusiveMinimum"] = schema["exclusiveMinimum"], True
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if schema.get("additionalProperties") is True:
        del schema["additionalProperties"]


def _spell_default(schema: Schema) -> None:
    """Only a default that is something is written."""
    if schema.get("default", True) not in (None, []):
        return
    if schema.pop("default") is None and "properties" in schema:
        schema[LEFT_OUT] = True
