"""One module for each kind that is about something in Kafka: how it is planned, remembered and shown.

`kind.py` says what a module of a kind has; `table.py` finds the module of a resource.
"""
