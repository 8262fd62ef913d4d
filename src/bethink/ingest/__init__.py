"""Write path: admit, redact, deduplicate, link and store memories."""
