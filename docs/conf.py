"""How the site is built: `./dev docs`. Everything comes from these pages, the docstrings and the library itself."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
(HERE / "_extra").mkdir(exist_ok=True)  # what site_pages makes goes there
sys.path.insert(0, str(HERE))

import psidp  # noqa: E402

project = "psidp"
author = "The psidp authors"
copyright = f"2026, {author}"
version = release = psidp.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "site_pages",
    "site_math",
]
exclude_patterns = ["_build", "site_*.py"]
root_doc = "index"
default_role = "code"

myst_heading_anchors = 3
myst_enable_extensions = ["attrs_inline", "colon_fence"]
suppress_warnings = ["misc.highlighting_failure"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_mock_imports = ["torch", "triton", "opacus", "dp_accounting", "mbi", "jax"]
napoleon_custom_sections = ["Guarantees", "Refused"]
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"psidp {version}"
html_static_path = ["_static"]
html_js_files = ["access.js"]
html_css_files = ["access.css"]
html_extra_path = ["_extra"]
html_copy_source = False
html_show_sphinx = False
