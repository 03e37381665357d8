"""The one exception a user's mistake raises."""


class RamifyError(Exception):
    """What is wrong, where, and what to do about it, in one sentence; the command line prints it as is."""
