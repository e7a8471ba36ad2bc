"""Writes what producers send: one Produce from its batches to its answer."""
