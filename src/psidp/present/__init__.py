"""Words and pictures: command line, tables, cards, pages. This floor decides nothing; it parses, calls, shows."""
