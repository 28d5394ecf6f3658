"""GRIB files, of editions 1 and 2: fields of one quantity as an array, whose messages are read in place."""

from omnizarr.readers.grib.contents import read as read
