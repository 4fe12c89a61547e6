"""A program in a pseudo-terminal: what it writes, and what a person sees of that."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import unicodedata

END = b"\x00end of output"  # no program writes a zero byte


def environment(**variables):
    """This one without what a terminal's user sets; None removes a variable."""
    names = ["COLUMNS", "TERM", "NO_COLOR", "LC_ALL", "LC_CTYPE", "LANG"]
    kept = {key: value for key, value in os.environ.items() if key not in names}
    kept.update({"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    kept.update(variables)
    return {key: value for key, value in kept.items() if value is not None}


def run_in_terminal(command, columns, folder=None, stdout=None, **variables):
    """(exit code, the text that reached the terminal) of a command whose streams all lead there, or all but
    its standard output, where a file is given for that."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    seen = bytearray()

    def read():
        while not seen.endswith(END):
            seen.extend(os.read(master, 65536))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        code = subprocess.run(command, stdin=slave, stdout=stdout or slave, stderr=slave, timeout=300,
                              cwd=folder, env=environment(**variables)).returncode
    finally:
        # This side stays open until all was read: a terminal whose last writer has gone may drop what it
        # still holds.
        os.write(slave, END)
        reader.join()
        os.close(slave)
        os.close(master)
    return code, seen.removesuffix(END).decode()


def without_colours(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def width(text):
    """Columns, by Python's own tables."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
               for c in without_colours(text))


def screen_lines(text):
    """The lines that are left when returns and wipes have been obeyed, without colours."""
    lines = []
    for line in without_colours(text).replace("\r\n", "\n").split("\n"):
        shown = ""
        for piece in re.split(r"(\r|\x1b\[K)", line):
            if piece == "\r":
                shown = "\r" + shown.lstrip("\r")
            elif piece == "\x1b[K":
                shown = "" if shown.startswith("\r") else shown
            else:
                shown = piece if shown.startswith("\r") else shown + piece
        lines.append(shown.lstrip("\r"))
    return lines
