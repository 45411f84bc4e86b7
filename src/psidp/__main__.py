"""python -m psidp: the command line."""

from psidp.present.cli import main

main()
