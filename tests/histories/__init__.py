"""Judges histories of clients by the rules of Jepsen and Elle for Kafka, as pure functions over plain data.

A test records what its clients asked and were told (`operations`), and asks `judge.anomalies`. The simulation and
`tests/chaos` do. `docs/explanation/histories.md` says what each anomaly is and which Kafka allows.
"""
