-- The ledger's tables, version 1. Statements are separated by empty lines; SQLite and PostgreSQL read the same text.
-- No column is ever NULL: what does not apply is '' or 0. No row is ever updated or deleted.

-- One row per schema version this ledger has had. The identity is the seed of the hash chain.
CREATE TABLE psidp_ledger (
    version   INTEGER NOT NULL PRIMARY KEY,
    identity  TEXT    NOT NULL,
    applied   TEXT    NOT NULL
)

-- Everything that ever happened, in order: ids run 1, 2, 3, ... without a gap.
CREATE TABLE psidp_entries (
    id         BIGINT            NOT NULL PRIMARY KEY,
    time       TEXT              NOT NULL,  -- UTC, 2026-01-31T23:59:59.999999Z, never before the entry above
    budget     TEXT              NOT NULL,
    partition  TEXT              NOT NULL,  -- the part of the data that was read, or ''
    state      TEXT              NOT NULL,  -- opened, spent, answered, withheld, interrupted, raised, split, ...
    event      TEXT              NOT NULL,  -- what happened, as JSON with a "kind"; kinds are only ever added
    psi        DOUBLE PRECISION  NOT NULL,  -- the price of this entry
    kappa      DOUBLE PRECISION  NOT NULL,
    purpose    TEXT              NOT NULL,
    refers     BIGINT            NOT NULL,  -- the spend that this entry is about, or 0
    key        TEXT              NOT NULL,  -- idempotency key, or ''
    request    TEXT              NOT NULL,  -- SHA-256 of the request under that key, or ''
    answer     TEXT              NOT NULL,  -- the noisy answer as JSON, or ''
    standing   TEXT              NOT NULL,  -- the budget after this entry: cap and exact running totals, as JSON
    previous   TEXT              NOT NULL,  -- the hash of the entry above
    hash       TEXT              NOT NULL   -- SHA-256 of all the columns to the left
)

-- The last entry of a budget, which carries its totals.
CREATE UNIQUE INDEX psidp_entries_budget ON psidp_entries (budget, id)

-- The last entry of a partition.
CREATE INDEX psidp_entries_partition ON psidp_entries (budget, partition, id) WHERE partition <> ''

-- What was asked under an idempotency key.
CREATE INDEX psidp_entries_key ON psidp_entries (budget, key, id) WHERE key <> ''

-- What changed a budget itself: its opening, raising, renewal, closing. Few, and in every report.
CREATE INDEX psidp_entries_changes ON psidp_entries (budget, id)
    WHERE state NOT IN ('spent', 'answered', 'withheld', 'interrupted')
