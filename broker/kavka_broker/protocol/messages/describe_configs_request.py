"""DescribeConfigsRequest."""

from kavka_broker.protocol.message import EMPTY, Message, Struct


class DescribeConfigsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "configuration_keys")
    SCHEMA = (
        ("ResourceType", "resource_type", "int8", (1, 4)),
        ("ResourceName", "resource_name", "string", (1, 4)),
        ("ConfigurationKeys", "configuration_keys", "[]string", (1, 4), (1, 4)),
    )

    def __init__(
        self,
        resource_type: int = 0, resource_name: str = "", configuration_keys: list[str] | None = EMPTY,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = [] if configuration_keys is EMPTY else configuration_keys


class DescribeConfigsRequest(Message):
    KIND = "request"
    API_KEY = 32
    VERSIONS = (1, 4)
    FLEXIBLE_FROM = 4
    __slots__ = ("resources", "include_synonyms", "include_documentation")
    SCHEMA = (
        ("Resources", "resources", "[]DescribeConfigsResource", (1, 4)),
        ("IncludeSynonyms", "include_synonyms", "bool", (1, 4)),
        ("IncludeDocumentation", "include_documentation", "bool", (3, 4)),
    )

    def __init__(
        self,
        resources: list[DescribeConfigsResource] = EMPTY, include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = [] if resources is EMPTY else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation
