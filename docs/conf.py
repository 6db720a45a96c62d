"""Sphinx settings. `make docs` builds with warnings as errors. Neither the build nor the reader needs a network."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]  # for our own extensions, and the real data

project = "consilience"
author = "the consilience developers"
copyright = author
version = release = version_of("consilience")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "formulas",
    "gallery",
]
exclude_patterns = ["_build", "reproduction/*.md", "measured/*.md"]  # parts that pages include

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "code"  # docstrings write names in single backquotes
autosummary_generate = False  # the tables link to the entries on the same page
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_math_renderer = "mathml"  # see formulas.py
html_theme = "furo"
html_title = f"consilience {release}"
html_static_path = ["_static"]
html_css_files = ["consilience.css"]
html_favicon = "_static/mark.svg"
html_theme_options = {
    "light_logo": "mark.svg",
    "dark_logo": "mark.svg",
    "light_css_variables": {"color-brand-primary": "#1f6f8b", "color-brand-content": "#1f6f8b"},
    "dark_css_variables": {"color-brand-primary": "#7cc6dd", "color-brand-content": "#7cc6dd"},
}


def trim_code(app: Sphinx, doctree: nodes.document) -> None:  # noqa: ARG001 (Sphinx calls it so)
    """Drop the empty line that ends each doctest in the pages: doctest needs it, readers do not."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():  # Sphinx colours only these
            block.rawsource = block.rawsource.rstrip("\n")
            block.children = [nodes.Text(block.rawsource)]


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", trim_code)
