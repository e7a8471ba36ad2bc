"""The names that fields have in a resource: their own in camelCase, unless they say another."""

from typing import Any

from pydantic import BaseModel, Field
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo


def keyed(key: str, **more: Any) -> Any:
    """A field whose name in a resource is `key`, where no attribute can have that name."""
    return Field(validation_alias=key, serialization_alias=key, **more)


def fields_by_key(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The fields of a model by their names in a resource."""
    return {str(field.validation_alias or to_camel(name)): field for name, field in model.model_fields.items()}
