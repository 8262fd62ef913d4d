"""The parts of the facade: what `Memory` can do, a subject to a file."""
