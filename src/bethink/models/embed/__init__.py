"""Embedders: static token vectors, transformers, hashing, and served models."""
