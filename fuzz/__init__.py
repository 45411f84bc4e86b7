"""Campaigns that look for what breaks a property, with fresh seeds. `./dev fuzz --list` says what each of them tries.

A campaign is a module with a first sentence (the property), `explore(random)` (one round, which draws everything from
`random` and raises where the property fails) and RELAPSES (old defects by name; each brings one back while it is open).
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # oracles and tables that campaigns share with the suite
