"""The only randomness in psidp: key stream and exact Gaussian. This floor knows nothing of budgets or data."""
