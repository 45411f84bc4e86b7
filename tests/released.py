"""A question asked and released in one call, as most tests want it."""

__all__ = ["released"]

NO_NOISE = 1e9
"""A psi at which noise does not show."""


def released(curator, *asks, psi=NO_NOISE, purpose="", retry_key="", **terms):
    """The answer; `terms` are those of `Curator.ask`."""
    return curator.ask(*asks, **terms).release(psi=psi, purpose=purpose, retry_key=retry_key)
