"""Pictures of values: in terminals, in files and in notebooks. Nothing here knows of stores.

`contents` turns NumPy arrays into an image, a line or a table. `figure` lays it out on
paper, and `svg` and `paper` draw that; `terminal` draws with characters, or with the pixels that some terminals show.
"""
