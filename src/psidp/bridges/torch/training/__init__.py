"""Training: a plan, a ledger's payment, steps in a journal, and a run that survives a kill."""
