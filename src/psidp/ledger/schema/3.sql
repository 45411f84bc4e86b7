-- Version 3: notes on a spend, renewals and all other entries say who wrote them, so that the guards of roles can look at
-- each of them; bringing a ledger forward also brings its guards forward. Programs of version 2 do not write that, and
-- are kept out by the version. The hash is that of version 1.

-- What became of a spend, for lists.
CREATE INDEX psidp_entries_notes ON psidp_entries (budget, state, refers)
    WHERE state IN ('answered', 'withheld', 'interrupted')
