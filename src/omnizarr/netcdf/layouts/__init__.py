"""The layouts of NCZarr: documents in, headers out, and back."""
