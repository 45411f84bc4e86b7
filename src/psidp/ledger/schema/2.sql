-- Version 2: entries say who asked and of which table, in their event; spends may need an approval. The hash is that of
-- version 1, so that old entries keep theirs. Older programs do not know approvals and pauses, and are kept out by the
-- version.

-- Copies of what the event says, "by" and "table", for lists. The hash covers the event; verify compares.
ALTER TABLE psidp_entries ADD COLUMN actor TEXT NOT NULL DEFAULT ''

ALTER TABLE psidp_entries ADD COLUMN table_name TEXT NOT NULL DEFAULT ''

CREATE INDEX psidp_entries_actor ON psidp_entries (actor, id) WHERE actor <> ''

CREATE INDEX psidp_entries_table ON psidp_entries (table_name, id) WHERE table_name <> ''

-- An approval is used once: the spend that uses it refers to it.
CREATE UNIQUE INDEX psidp_entries_used ON psidp_entries (refers) WHERE state = 'spent' AND refers <> 0
