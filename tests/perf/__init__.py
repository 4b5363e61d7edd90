"""Benchmarks that print the figures of the README: ``python -m tests.perf``. Not collected by pytest."""
