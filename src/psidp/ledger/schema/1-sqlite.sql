-- Append only: SQLite itself refuses to change the past.
CREATE TRIGGER psidp_entries_keep BEFORE UPDATE ON psidp_entries
BEGIN SELECT RAISE(ABORT, 'ledger entries are never updated'); END

CREATE TRIGGER psidp_entries_stay BEFORE DELETE ON psidp_entries
BEGIN SELECT RAISE(ABORT, 'ledger entries are never deleted'); END
