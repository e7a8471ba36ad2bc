"""The page in a browser that `kavka console` and the operator serve: its tables, how it is assembled, its policy."""
