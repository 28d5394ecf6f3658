"""How Sphinx builds the manual (`make docs`)."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "extensions"), str(Path(__file__).parents[1])]

project = "omnizarr"
author = project_copyright = "omnizarr contributors"
release = version = version_of("omnizarr")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "commands",  # docs/extensions: the reference of the command line
    "speed",  # docs/extensions: the picture of the front page
    "captions",  # docs/extensions: those of the sidebar
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = "omnizarr"
pygments_dark_style = "github-dark"  # the one of the theme underlines names of modules
highlight_options = {"python": {"stripnl": True}, "console": {"stripnl": True}}  # no empty lines at the end of examples
html_static_path = ["_static"]
html_css_files = ["manual.css"]
html_js_files = ["versions.js"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
        "versions.html",
    ]
}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3  # links to headings are checked

# The button copies what you type: neither prompts nor output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

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

linkcheck_timeout = 20
linkcheck_workers = 4
linkcheck_ignore = [r"http://127\.0\.0\.1", r"https://([a-z]+\.)?example\.org"]

# Names of attributes in lists are looked up as well, and `chunks` is one of Array and of AsyncArray.
suppress_warnings = ["ref.python"]
default_role = "py:obj"  # a link where there is such a thing, else code
maximum_signature_line_length = 88  # long signatures get a line per parameter
toc_object_entries_show_parents = "hide"
