"""REST API over HTTP, served together with MCP behind one guard."""
