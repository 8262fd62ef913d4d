"""abmind: a staged pipeline of retrievers and many small adjustments."""
