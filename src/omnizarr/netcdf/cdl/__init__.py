"""CDL, the text form of netCDF datasets: printed as ncdump does, read as ncgen does."""
