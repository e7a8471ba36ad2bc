"""What one client asks of one partition, from fetch to fetch."""

from kavka_broker.protocol.messages.fetch_request import FetchPartition

TopicKey = bytes | str  # the topic id where the version has it, otherwise its name


class SessionPartition:
    """A partition that a client fetches, with the offsets that the client was told last."""

    __slots__ = ("index", "log_start_offset", "position", "sent_high_watermark", "topic")

    def __init__(self, topic: TopicKey, position: FetchPartition) -> None:
        self.topic = topic
        self.index = position.partition
        self.position = position
        self.sent_high_watermark = -1
        self.log_start_offset = -1

    def ask_again(self, position: FetchPartition, *, is_of_follower: bool) -> None:
        """Take the offset from which the client fetches now. A follower that names a partition may have dropped every
        answer before: it was asleep after an error, or follows in another epoch, or had this fetch on its way already.
        So it has to be told the offsets again, also those that have not changed.
        """
        if is_of_follower:
            self.sent_high_watermark = -1
        self.position = position

    def told(self, high_watermark: int, log_start_offset: int) -> bool:
        """Remember the offsets that the client is about to learn; returns whether any of them is new to it."""
        changed = high_watermark != self.sent_high_watermark or log_start_offset != self.log_start_offset
        self.sent_high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        return changed
