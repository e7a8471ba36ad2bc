"""Ends a batch that was left half done, and whose topic is there no more: one of the same name was made since.

Nothing can read that batch again. It is ended with what the tables have of it; its chains are followed no further, and
say up to where they were (`last_sequence`).
"""

from kavka_audit.delta.chain_rows import known_chains, offsets_behind, replace_chains
from kavka_audit.delta.chain_states import Batch, follow
from kavka_audit.delta.tables import NUMBER, Tables, identifier


def end_deleted_topics(tables: Tables, topic_id: str, now_ms: int) -> None:
    """End the batch of another topic than this one, if there is such. Raises LakeError."""
    before_chains, number = (tables.dead_letters, tables.events), tables.chains.number
    if all(table.number <= number for table in before_chains):
        return
    chains, reached = known_chains(tables.chains), dict[str, int]()
    ends = {(state.topic_id, state.partition): 0 for state in chains.values()} | offsets_behind(tables)
    for (topic, partition), last in ends.items():
        end = max(last, *(table.reached(topic, partition) for table in before_chains))
        if topic != topic_id and end > tables.chains.reached(topic, partition):
            reached[identifier(topic, partition)] = end
            deleted = Batch(topic, partition, 0, now_ms, has_holes=True)
            chains = follow(chains, deleted, (), lambda *_: ())
    if reached:
        replace_chains(tables.chains, chains, {NUMBER: number + 1, **reached})
