"""The MCP server: a memory as tools, resources and prompts. Slow parts load once it answers."""
