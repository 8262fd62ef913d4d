"""Who may do what: rights, the one policy table, tokens, and the guard before every request."""
