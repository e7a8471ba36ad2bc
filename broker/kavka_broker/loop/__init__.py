"""Shares the event loop: turns between clients, slices of long work, threads, timers, and background tasks."""
