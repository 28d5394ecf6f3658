"""Captions of the tables of contents within chapters, for the sidebar: the theme shows only those of the front page."""

from bs4 import BeautifulSoup
from sphinx import addnodes

NAVIGATION = "furo_navigation_tree"


def setup(app):
    app.connect("html-page-context", fill, priority=900)  # after the theme
    return {"parallel_read_safe": True}


def fill(app, name, template, context, doctree):
    """Put each caption before the first page below it."""
    if not context.get(NAVIGATION):
        return
    tree = BeautifulSoup(context[NAVIGATION], "html.parser")
    links = {link["href"]: link for link in tree.find_all("a", href=True)}
    for caption, first in captions(app.env):
        link = links.get("#" if first == name else app.builder.get_relative_uri(name, first))
        if link is not None:
            item = tree.new_tag("li", attrs={"class": "chapter-caption", "role": "presentation"})
            item.string = caption
            link.find_parent("li").insert_before(item)
    context[NAVIGATION] = str(tree)


def captions(env):
    """Yield the captions below the front page, each with the first page that it is for."""
    for page in sorted(env.toctree_includes):
        if page != env.config.root_doc:
            for toctree in env.get_doctree(page).findall(addnodes.toctree):
                if toctree.get("caption"):
                    yield toctree["caption"], toctree["entries"][0][1]
