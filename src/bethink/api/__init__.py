"""The mixins that make up `Memory`, one subject per module."""
