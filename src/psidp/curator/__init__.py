"""Private statistics from tables: queries, clipping in SQL, answers. This floor knows nothing of screens."""
