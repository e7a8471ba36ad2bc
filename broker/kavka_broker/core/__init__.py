"""The rules of the broker as plain functions over plain data: no I/O, no clock, no asyncio."""
