"""Our speeds beside the peers', measured in one run. `./dev bench --help` lists what can be chosen."""
