"""The design pages keep their word: every test they name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("page", ["torch.md", "step.md", "trainer.md"])
def test_every_test_that_the_design_names_exists(page):
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", (ROOT / "docs/design" / page).read_text())
    assert len(named) >= 10
    for path, name in named:
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
