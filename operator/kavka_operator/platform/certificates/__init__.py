"""The authority of a cluster, and the certificates that it signs for nodes and for the operator.

`renewal` says what is to be drawn again and when, over texts and dates; `authority` draws keys and signs, with
`cryptography`, a library that only clusters that are secured need; `bundles` says which files a node is given.
"""
