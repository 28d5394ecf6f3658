"""Translation to another format: of metadata in `translation` and its parts, of a whole store in `translated`."""
