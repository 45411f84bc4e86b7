"""docs/design/curator.md names a test for each claim, and each of them exists."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "design" / "curator.md").read_text()


def test_every_claim_is_held_by_a_test_that_exists():
    claims = re.split(r"\n## (?=\d)", PAGE)[1:]
    assert [int(claim.split(".")[0]) for claim in claims] == list(range(1, 12))
    for claim in claims:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", claim)
        assert named
        for path, name in named:
            tree = ast.parse((ROOT / path).read_text())
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (path, name)
