"""Decodes records whose schemas are in a registry: Confluent's wire format, with Avro, Protobuf or JSON Schema."""
