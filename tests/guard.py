"""Run a program as long as standard input is open: until its parent closes it, or ends."""

import contextlib
import os
import signal
import subprocess
import sys
import threading


def main() -> None:
    # In a group of its own, to be ended with its children, and out of the reach of Ctrl-C.
    program = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=os.name == "posix")

    def end_with_it() -> None:
        program.wait()
        os._exit(program.returncode or 1)

    threading.Thread(target=end_with_it, daemon=True).start()
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError):
        sys.stdin.buffer.read()
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
    else:
        program.kill()
    program.wait()
    os._exit(0)


if __name__ == "__main__":
    main()
