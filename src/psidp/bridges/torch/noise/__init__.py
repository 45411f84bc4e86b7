"""Exact noise on tensors: the key stream, its kernels, and what the host settles. Knows nothing of models."""
