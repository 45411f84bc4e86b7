"""Thin adapters to other people's libraries. This floor translates; only torch's computes, on its own devices."""
