"""python -m psidp: the command line."""

from psidp.cli.main import main

main()
