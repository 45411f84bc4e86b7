"""Pictures in every form."""

import pytest

import psidp


@pytest.mark.parametrize(
    ("ending", "head"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF"), ("html", b"<!DOCTYPE")]
)
def test_a_figure_is_written(ending, head, tmp_path):
    path = tmp_path / f"roc.{ending}"
    psidp.figures.save(psidp.figures.roc(psidp.Guarantee(1.0)), path)
    assert path.read_bytes().lstrip().lower().startswith(head.lower())
