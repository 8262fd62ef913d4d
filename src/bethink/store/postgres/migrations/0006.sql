-- Schema version 6: the likeness of words is computed from the posting lists.

DROP TABLE bethink.signature;
