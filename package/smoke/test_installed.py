"""What is installed is the package, whole, and not the clone."""

from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path

import psidp

CLONE = Path(__file__).resolve().parents[2]


def test_it_is_the_installed_package():
    home = Path(psidp.__file__).resolve()
    assert "site-packages" in home.parts
    assert CLONE not in home.parents
    assert distribution("psidp").version == psidp.__version__


def test_every_name_of_the_front_page_loads():
    assert all(getattr(psidp, name).__doc__ for name in psidp.__all__)


def test_what_is_read_at_work_came_along():
    for name in ("py.typed", "__init__.pyi", "noise/rectangles.npy", "ledger/schema/2-sqlite.sql",
                 "present/card/card.schema.json", "present/web/static/index.html"):  # fmt: skip
        assert files("psidp").joinpath(name).is_file(), name


def test_no_test_and_no_bench_came_along():
    tops = {Path(str(file)).parts[0] for file in distribution("psidp").files}
    assert {top for top in tops if not top.startswith(("psidp", ".."))} == set()
