"""The design pages keep their word: claims are numbered, each names a test that holds it, and every test exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "design"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


@pytest.mark.parametrize("page", sorted(p.name for p in PAGES.glob("*.md") if NAMED.search(p.read_text())))
def test_every_test_that_a_page_names_exists(page):
    for path, name in NAMED.findall((PAGES / page).read_text()):
        tree = ast.parse((ROOT / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, (path, name)


@pytest.mark.parametrize("page", sorted(p.name for p in PAGES.glob("*.md") if re.search(r"\n## 1\. ", p.read_text())))
def test_every_claim_is_held_by_a_test(page):
    claims = re.split(r"\n## (?=\d)", (PAGES / page).read_text())[1:]
    assert [int(claim.split(".")[0]) for claim in claims] == list(range(1, len(claims) + 1))
    assert all(NAMED.search(claim) for claim in claims)
