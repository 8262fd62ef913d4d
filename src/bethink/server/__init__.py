"""Servers: MCP over stdio and HTTP, and a REST API, on one set of tools."""
