"""Words and pictures: the command line, tables, cards and pages. This floor decides nothing; it parses, calls, shows."""
