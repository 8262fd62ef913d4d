"""Retrieval: the read pipeline, its profiles, retrievers and stages."""
