"""Where rows come from: files, frames, databases; and public tables and groups beside them."""

from psidp.tables.sources.opening import open_source
from psidp.tables.sources.public_tables import joined
from psidp.tables.sources.source import Source

__all__ = ["Source", "joined", "open_source"]
