# SPDX-License-Identifier: MIT
"""The output of a child process, which is read while the child writes."""
import os
import tempfile


class ChildLog:
    """A file without a name, for the stdout or stderr of children.

    The child appends to one open file and we read from another. If both were the same one, they
    would share its offset, and a line that is written while we read from the beginning would
    overwrite the first lines. (A TemporaryFile of mode "a+" has no O_APPEND and is such a file.)
    A file and not a pipe: a pipe that nobody reads would stop the child when it is full.
    """

    def __init__(self):
        descriptor, path = tempfile.mkstemp()
        os.close(descriptor)
        self.writer = open(path, "ab", buffering=0)
        self.reader = open(path, encoding="utf-8")
        os.unlink(path)

    def fileno(self):
        """What subprocess asks for: the file that the child appends to."""
        return self.writer.fileno()

    def read(self):
        """Everything that children have written so far."""
        self.reader.seek(0)
        return self.reader.read()
