"""Where rows come from: files, frames, databases; and public tables and groups beside them."""
