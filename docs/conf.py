"""Sphinx settings. `make docs` builds with warnings as errors and needs no network."""

from importlib.metadata import version as version_of

project = "consilience"
author = "the consilience developers"
copyright = author
version = release = version_of("consilience")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    # The build fetches nothing, but the reader's browser fetches MathJax; offline, formulas show as their LaTeX source.
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "numpydoc",
]
exclude_patterns = ["_build", "reproduction/*.md", "measured/*.md"]  # parts that pages include

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

default_role = "code"  # docstrings write names in single backquotes
autosummary_generate = False  # the tables link to the entries on the same page
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_default_options = {"members": True}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

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
