"""The process: configuration file, wiring, signals, admin HTTP, metrics."""
