# SPDX-License-Identifier: MIT
"""The output of a child process. The test reads it while the child writes."""
import os
import tempfile


class ChildLog:
    """A file without a name, for the stdout or stderr of children.

    The child appends through one open file description and the test reads through another. With a
    shared one, the two would share an offset: a line written while the test reads from the
    beginning would overwrite the first lines. (A TemporaryFile of mode "a+" has this problem,
    because it does not set O_APPEND.) It is not a pipe, because a full pipe would stop the child.
    """

    def __init__(self):
        descriptor, path = tempfile.mkstemp()
        os.close(descriptor)
        self.writer = open(path, "ab", buffering=0)
        self.reader = open(path, encoding="utf-8")
        os.unlink(path)

    def fileno(self):
        """The file that the child appends to; subprocess calls this function."""
        return self.writer.fileno()

    def read(self):
        """Everything that children have written so far."""
        self.reader.seek(0)
        return self.reader.read()
