"""Campaigns that look for what breaks a property, with fresh seeds. `./dev fuzz --list` says what each of them tries.

A campaign is a module with a first sentence (the property), `explore(random)` (one round, which draws everything from
`random` and raises where the property fails) and RELAPSES (old defects by name; each brings one back while it is open).
"""
