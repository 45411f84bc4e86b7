"""A real DP-SGD loop: softmax regression on scikit-learn's digits, each gradient clipped to norm 1, noise on the sum.

Every record takes part in every step, so that T steps with noise sigma are T Gaussian mechanisms: psi = sqrt(T)/sigma.
A canary is a record with a pixel of its own that no digit uses; its gradient is longer than 1 and is clipped to 1.
"""

from functools import cache

import numpy as np
from sklearn.datasets import load_digits

STEPS, SIGMA, BRIGHT, CLASSES = 8, 8**0.5, 20.0, 10
"""psi = sqrt(8)/sqrt(8) = 1 for each canary."""


@cache
def digits(pixels):
    """150 digits with so many pixels added for canaries, and their labels as rows of 0 and 1."""
    images, labels = load_digits(return_X_y=True)
    images = np.hstack([images[:150] / 16.0, np.zeros((150, pixels))])
    return images, np.eye(CLASSES)[labels[:150]]


def canaries(pixels, included):
    """The canaries that are in the data: one bright pixel each, all labelled 0."""
    records = np.zeros((pixels, 64 + pixels))
    records[np.arange(pixels), 64 + np.arange(pixels)] = BRIGHT
    return records[included], np.eye(CLASSES)[np.zeros(int(np.sum(included)), dtype=int)]


def train(included, rng, sigma=SIGMA, clip=1.0):
    """Canaries' scores after one training: how far the noisy sums point along the gradient each would have added."""
    pixels = len(included)
    images, labels = digits(pixels)
    extra, extra_labels = canaries(pixels, included)
    x, y = np.vstack([images, extra]), np.vstack([labels, extra_labels])
    weights, scores = np.zeros((x.shape[1], CLASSES)), np.zeros(pixels)
    length = np.linalg.norm(x, axis=1)
    for _ in range(STEPS):
        residual = softmax(x @ weights) - y
        norm = length * np.linalg.norm(residual, axis=1)
        total = x.T @ (residual * np.minimum(1.0, clip / norm)[:, None]) + rng.normal(0, sigma, weights.shape)
        direction = softmax(BRIGHT * weights[64:]) - np.eye(CLASSES)[0]
        scores += (total[64:] * direction).sum(axis=1) / np.linalg.norm(direction, axis=1)
        weights -= 0.002 * total
    return scores


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def independent_runs(n, rng, **broken):
    """Scores of one canary in n runs with it and in n runs without."""
    return tuple(np.array([train(np.array([there]), rng, **broken)[0] for _ in range(n)]) for there in (True, False))
