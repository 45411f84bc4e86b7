-- The copies of entries that are there already: the one time that rows are touched.
DROP TRIGGER psidp_entries_keep

UPDATE psidp_entries SET actor = json_extract(event, '$.by') WHERE json_extract(event, '$.by') IS NOT NULL

CREATE TRIGGER psidp_entries_keep BEFORE UPDATE ON psidp_entries
BEGIN SELECT RAISE(ABORT, 'ledger entries are never updated'); END
