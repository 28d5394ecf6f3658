"""The parts of `omnizarr.tools.translation`: elements, codecs, and the account of what is lost."""
