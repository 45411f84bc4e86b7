"""In CI the bridges are tested against the real libraries, or not at all."""

import importlib.util
import os


def test_ci_has_the_libraries_that_are_bridged():
    missing = [
        name for name in ("opacus", "dp_accounting", "torch", "triton") if importlib.util.find_spec(name) is None
    ]
    assert not missing or os.environ.get("CI") != "true", f"CI must test the bridges: {missing} missing"
