"""The Gaussian mechanism on values and arrays, clipped sums, post-processing. This floor knows nothing of tables."""
