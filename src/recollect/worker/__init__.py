"""A local process that keeps what is slow to start: asked over a socket, never relied on."""
