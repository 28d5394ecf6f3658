"""How Sphinx builds the manual (`make docs`)."""

from importlib.metadata import version as version_of

project = "omnizarr"
author = "omnizarr contributors"
release = version = version_of("omnizarr")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "omnizarr"

myst_heading_anchors = 3  # links to headings are checked
autosummary_generate = True
autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_member_order = "groupwise"
autodoc_typehints = "signature"
napoleon_google_docstring = False
napoleon_use_rtype = False
default_role = "code"
toc_object_entries_show_parents = "hide"
