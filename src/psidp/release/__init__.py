"""The only memory in the house: mechanism, ledger, curator. This floor knows nothing of screens."""
