"""Stores on this machine: directories, memory, zip archives."""
