"""What has gone through one partition since this process began; the metrics sum it up by topic."""


class Traffic:
    """Plain counters, as Apache Kafka counts them for each topic."""

    __slots__ = ("bytes_copied", "bytes_in", "bytes_out", "fetches", "messages_in", "produces")

    def __init__(self) -> None:
        self.bytes_in = self.messages_in = 0  # from producers
        self.bytes_out = 0  # to consumers
        self.bytes_copied = 0  # from the leader
        self.produces = self.fetches = 0  # attempts, of followers too
