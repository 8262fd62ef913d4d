"""Database plumbing: connections, locks, opening and migration, rows, history."""
