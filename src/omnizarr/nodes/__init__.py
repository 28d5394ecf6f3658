"""Arrays and groups in a store."""
