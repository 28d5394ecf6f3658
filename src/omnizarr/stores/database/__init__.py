"""Stores in databases: SQLite and LMDB."""
