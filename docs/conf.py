"""Sphinx settings: `python -m sphinx -W --keep-going -b html docs docs/_build/html`."""

import sys
from pathlib import Path

import sgdsde

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "sgdsde"
author = copyright = "The sgdsde authors"
release = version = sgdsde.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    # docs/_ext: the table of methods, read from the traits; docstrings made for a terminal, made reStructuredText
    "schemes_table",
    "plain_docstrings",
]
myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
templates_path = ["_templates"]
exclude_patterns = ["_build"]
suppress_warnings = ["ref.python"]  # words in lists of types that several classes have as attributes
html_theme = "furo"
html_title = f"sgdsde {release}"
