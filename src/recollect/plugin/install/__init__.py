"""Installing into a host: what would be written, shown as a diff, written, and taken back."""
