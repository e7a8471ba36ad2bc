"""Compaction: which log is cleaned next, up to where, and what of it stays. Plain data in, decisions out."""
