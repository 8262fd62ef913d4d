"""What other tools keep, read as drafts. A new source is one reader and one line here."""
