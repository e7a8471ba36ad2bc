"""The vocabulary of the operator: what was seen, what is to be done, and the words for it. No rules and no I/O."""
