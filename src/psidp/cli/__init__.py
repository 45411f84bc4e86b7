"""The command line, one file for each command: parse, call, show. This floor decides nothing."""
