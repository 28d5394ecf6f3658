"""Arrays in files of other formats: manifests say where their chunks lie, and a store reads them."""
