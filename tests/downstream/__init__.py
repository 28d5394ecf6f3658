"""The own tests of packages that use Zarr, run upon omnizarr: ``python -m tests.downstream``, see `make downstream`."""
