"""Remote stores, and stores of other libraries."""
