"""The only memory in the house: budgets, entries, chain and store. This floor knows nothing of data or noise."""
