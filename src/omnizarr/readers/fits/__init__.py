"""FITS files: their images and the columns of their tables as arrays, which are read in place."""

from omnizarr.readers.fits.contents import read as read
