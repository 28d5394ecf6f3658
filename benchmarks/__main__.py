"""Run all measurements: speed of reading and writing, calls per read, time of import."""

from __future__ import annotations

from benchmarks import calls, import_time, read_write

if __name__ == "__main__":
    read_write.main()
    print()
    calls.main()
    print()
    import_time.main()
