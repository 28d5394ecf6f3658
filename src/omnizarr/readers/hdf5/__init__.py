"""HDF5 and netCDF-4 files, read without libhdf5: structure, attributes, and where the chunks are.

Pure functions over ranges of bytes of any store, without a lock. `file.File` finds objects, `datasets` and `attributes`
what they are, `chunks` where their elements lie.

Spec: HDF5 File Format Specification, versions 3 and 4.
"""
