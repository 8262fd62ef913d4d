"""Memory of files: reading only what changed, inside allowed folders only."""
