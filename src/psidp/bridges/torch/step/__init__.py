"""The private step: per-example gradients, clipped and summed in whole numbers. Knows nothing of runs and ledgers."""
