-- Append only: PostgreSQL itself refuses to change the past.
CREATE FUNCTION psidp_entries_keep() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'ledger entries are never updated or deleted'; END $$

CREATE TRIGGER psidp_entries_keep BEFORE UPDATE OR DELETE ON psidp_entries
FOR EACH ROW EXECUTE FUNCTION psidp_entries_keep()

CREATE TRIGGER psidp_entries_stay BEFORE TRUNCATE ON psidp_entries
FOR EACH STATEMENT EXECUTE FUNCTION psidp_entries_keep()
