"""docs/design/audit.md names a test for each claim, and each of them exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "design" / "audit.md").read_text()


def test_every_test_the_proof_leans_on_exists():
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) > 30
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (path, name)


def test_every_claim_is_held_by_a_test():
    claims = PAGE.split("\n## ")[1:10]
    assert [int(claim.split(".")[0]) for claim in claims] == list(range(1, 10))
    assert all("Held by: `tests/" in claim for claim in claims)
