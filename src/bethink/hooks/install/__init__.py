"""Installation into a host: plan as a diff, write, and undo exactly."""
