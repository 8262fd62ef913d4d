"""Serving a memory over HTTP: a REST API and MCP behind one lock."""
