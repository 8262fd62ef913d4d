"""Configuration: settings, paths, spaces and the aliases of other systems."""
