"""The own tests of packages that use Zarr, run on omnizarr: ``python -m tests.downstream``, see `make downstream`."""
