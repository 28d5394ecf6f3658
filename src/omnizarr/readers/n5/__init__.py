"""N5 hierarchies: directories with ``attributes.json``, and one file for each block.

Spec: N5 4.0.0, "File-system specification", https://github.com/saalfeldlab/n5.
"""
