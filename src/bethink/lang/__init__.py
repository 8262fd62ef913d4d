"""Natural language processing without models."""
