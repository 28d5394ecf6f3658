"""TIFF files: their pages as arrays, whose tiles and strips are read in place."""

from omnizarr.readers.tiff.contents import read as read
