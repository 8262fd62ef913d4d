"""Start the MCP server of Bethink for a desktop application."""

import sys

from bethink.cli import main

if __name__ == "__main__":
    sys.exit(main(["mcp", *sys.argv[1:]]))
