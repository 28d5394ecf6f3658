"""The parts of `omnizarr.tools.translation`: elements, codecs, and losses."""
