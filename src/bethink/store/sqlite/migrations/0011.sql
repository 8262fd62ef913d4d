-- Schema version 11: the posting lists are the only index of words. What a damaged file has
-- lost of what goes here is no reason not to open it.

DROP TABLE IF EXISTS posting;
DROP TABLE IF EXISTS words;
DROP TABLE IF EXISTS words_config;
-- Also what compares texts as sets of words reads them.
DROP TABLE IF EXISTS signature;
DELETE FROM meta WHERE name = 'signature_changes';

-- Statistics count when they are asked for: no write pays for them.
DROP TRIGGER IF EXISTS tally_stored;
DROP TRIGGER IF EXISTS tally_erased;
DROP TRIGGER IF EXISTS tally_ended;
DROP TRIGGER IF EXISTS tally_begun;
DROP TABLE IF EXISTS tally;
DROP TRIGGER IF EXISTS link_made;
DROP TRIGGER IF EXISTS link_removed;
DROP TRIGGER IF EXISTS link_left;
DROP TRIGGER IF EXISTS link_turned;
DROP TABLE IF EXISTS link_tally;
