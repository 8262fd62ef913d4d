"""The log of operations of a space: what each device did, and the rows that it makes."""
