"""The design page keeps its word: every test it names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def test_every_test_that_the_design_names_exists():
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", (ROOT / "docs/design/torch.md").read_text())
    assert len(named) >= 10
    for path, name in named:
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
