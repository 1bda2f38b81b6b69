"""Everything this package raises on purpose, split by whose fault it is.

    LLMedicError
    ├── CallerError            the command line or a file given to us is wrong    exit 2
    │   ├── UsageError         options that do not fit together
    │   └── InputError         a file that cannot be read as what it was given as
    ├── TargetError            the system under diagnosis did not answer usefully  exit 3
    │   ├── UnreachableError   no connection, TLS failure, time-out
    │   └── AnswerError        it answered, but not with what was asked for
    └── KnowledgeError         our own data files are inconsistent (a bug)         exit 70

A source that cannot be seen is a `Gap`, not an exception: these are for what stops the whole command.
"""

from __future__ import annotations


class LLMedicError(Exception):
    """Base of the tree: one clear line, and a hint that says what to do next."""

    exit_code = 70

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CallerError(LLMedicError):
    """The command line, or a file named on it, is wrong."""

    exit_code = 2


class UsageError(CallerError):
    """Options that do not fit together or name something that does not exist."""


class InputError(CallerError):
    """A file that cannot be read as what it was given as."""


class TargetError(LLMedicError):
    """The system under diagnosis did not answer usefully."""

    exit_code = 3


class UnreachableError(TargetError):
    """No connection, a TLS failure or a time-out."""


class AnswerError(TargetError):
    """An answer came, but not the one that was asked for (HTML, another status, broken compression)."""

    def __init__(self, message: str, *, hint: str = "", status: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class KnowledgeError(LLMedicError):
    """A data file that ships with the package contradicts itself or another one."""
