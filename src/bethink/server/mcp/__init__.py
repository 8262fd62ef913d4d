"""The MCP server: tools, resources and prompts. Slow imports happen after the handshake."""
