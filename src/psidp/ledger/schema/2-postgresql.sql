-- The copies of entries that are there already: the one time that rows are touched.
ALTER TABLE psidp_entries DISABLE TRIGGER psidp_entries_keep

UPDATE psidp_entries SET actor = event::jsonb ->> 'by' WHERE event::jsonb ->> 'by' IS NOT NULL

ALTER TABLE psidp_entries ENABLE TRIGGER psidp_entries_keep
