"""What every test stands on: hypothesis with fixed seeds, Triton in its interpreter, no tests of torch without torch.

The suite gives the same answer on every machine at every load: hypothesis draws the same examples each time and keeps
none of them; neither a deadline nor a health check asks how fast the machine is. `./dev fuzz` draws afresh.
"""

import os
from importlib.util import find_spec

from hypothesis import HealthCheck, settings

BY_MACHINE = (
    HealthCheck.too_slow,
    HealthCheck.filter_too_much,
    HealthCheck.data_too_large,
    HealthCheck.large_base_example,
)
settings.register_profile("same", database=None, deadline=None, suppress_health_check=BY_MACHINE, derandomize=True)
settings.register_profile("fresh", settings.get_profile("same"), derandomize=False)
settings.load_profile(os.environ.get("PSIDP_EXAMPLES", "same"))
os.environ["TRITON_INTERPRET"] = "1"

there = find_spec("torch") and find_spec("triton")
collect_ignore_glob = [] if there else ["src/psidp/bridges/torch/*", "tests/bridges/test_torch_*.py"]
