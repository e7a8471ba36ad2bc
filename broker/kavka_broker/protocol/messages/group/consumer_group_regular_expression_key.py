"""ConsumerGroupRegularExpressionKey."""

from kavka_broker.protocol.message import Message


class ConsumerGroupRegularExpressionKey(Message):
    KIND = "coordinator-key"
    API_KEY = 16
    VERSIONS = (0, 0)
    __slots__ = ("group_id", "regular_expression")
    SCHEMA = (
        ("GroupId", "group_id", "string", (0, 0)),
        ("RegularExpression", "regular_expression", "string", (0, 0)),
    )

    def __init__(self, group_id: str = "", regular_expression: str = "") -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression
