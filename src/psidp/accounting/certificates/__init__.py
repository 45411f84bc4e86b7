"""Answers proved once more in ball arithmetic (python-flint), on any platform."""
