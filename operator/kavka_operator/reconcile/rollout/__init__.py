"""Restarting the nodes of a cluster, one after the other, without taking anything away from its clients.

Some changes need a restart: a setting that brokers read only when they start, another version. A roll is a loop of five
steps, each a pure function of what is seen, so that it can be taken up again by whoever looks next:

- `diagnose`: how does each node stand to what is wanted of it?
- `plan`: which nodes, in which order, what will be unavailable meanwhile; with a hash to approve it by.
- `check`: may this node go down now? What not, is said in words; the roll waits for as long as it takes.
- act: the platform stops the node in good order (the controller moves its leaders away first) and starts it again.
- wait until it is back in every set of in-sync replicas and leads again what it is to lead; then the next.

A node that does not come back ends the roll: whatever is wrong with it would be wrong with the next one too.
"""
