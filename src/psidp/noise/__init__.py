"""The only dice in the house: entropy and the exact Gaussian. This floor knows nothing of budgets or data."""
