"""How Sphinx builds the manual (`make docs`)."""

from importlib.metadata import version as version_of

project = "omnizarr"
author = project_copyright = "omnizarr contributors"
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
html_static_path = ["_static"]
html_css_files = ["manual.css"]

myst_heading_anchors = 3  # links to headings are checked

# The pages of docs/api say what is shown; the tables of members there link to it.
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
# Names of defaults, not their values, would be looked up in the source, where `omnizarr.nodes.options.shows` has none.
# Names that say more than what they stand for.
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "DTypeLike": "DTypeLike"}

napoleon_google_docstring = False
napoleon_numpy_docstring = True
napoleon_use_param = False  # names and types of parameters in one line, as numpydoc has them
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes in a list, beside those that have docstrings of their own
napoleon_preprocess_types = False  # types are prose: "int or tuple of int"

# Names of attributes in lists are looked up as well, and `chunks` is one of Array and of AsyncArray.
suppress_warnings = ["ref.python"]
default_role = "py:obj"  # a link where there is such a thing, else code
maximum_signature_line_length = 88  # long signatures get a line per parameter
toc_object_entries_show_parents = "hide"
