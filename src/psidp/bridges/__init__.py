"""Thin adapters to other people's libraries. This floor translates; it computes nothing itself."""
