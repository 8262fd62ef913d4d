"""Memind: SIMPLE and DEEP retrieval over insights, items and threads."""
