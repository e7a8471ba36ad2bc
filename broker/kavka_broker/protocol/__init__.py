"""Bytes to messages and back: schemas, codec, framing, record batches, error codes. No I/O."""
