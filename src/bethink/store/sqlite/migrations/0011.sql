-- Schema version 11: the posting lists are the only index of words.

DROP TABLE posting;
DROP TABLE words;
-- Also what compares texts as sets of words reads them.
DROP TABLE signature;
DELETE FROM meta WHERE name = 'signature_changes';

-- Statistics count when they are asked for: no write pays for them.
DROP TRIGGER tally_stored;
DROP TRIGGER tally_erased;
DROP TRIGGER tally_ended;
DROP TRIGGER tally_begun;
DROP TABLE tally;
DROP TRIGGER link_made;
DROP TRIGGER link_removed;
DROP TRIGGER link_left;
DROP TRIGGER link_turned;
DROP TABLE link_tally;
