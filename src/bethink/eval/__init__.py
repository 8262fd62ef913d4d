"""Evaluation: store real memories, run real queries, report metrics with intervals.

A surface like the command line: it uses the facade and nothing uses it.
"""
