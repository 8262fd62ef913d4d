"""A space on several machines: the folder or the peer by which their logs are exchanged."""
