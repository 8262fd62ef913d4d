"""Embedders: our encoder, transformers, hashing, and served models."""
