"""Rendering of answers: JSON and text."""
