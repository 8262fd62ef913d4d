"""Access control: rights, the policy table, tokens and the request guard."""
