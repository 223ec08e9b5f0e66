"""What the Python programs share: each fact is one JSON object a line, an operation that throws included."""
import errno
import json
import re
import sys

ALL = (1 << 64) - 1  # the driver's largest number, which Cuvette calls "all"


class DriverError(Exception):
    """A driver call that a program made itself and that failed."""

    def __init__(self, name):
        super().__init__(name)
        self.name = name


def upper_snake(name):
    """CUDA_ERROR_INVALID_VALUE and cudaErrorInvalidValue, both as INVALID_VALUE."""
    if name.startswith("CUDA_ERROR_"):
        return name[len("CUDA_ERROR_"):]
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.removeprefix("cudaError")).upper()


def cuda_name(error):
    """The name of the CUDA error that an exception carries, or None."""
    if isinstance(error, DriverError):
        return upper_snake(error.name)
    found = re.search(r"CUDA_ERROR_[A-Z_0-9]+|cudaError[A-Z][A-Za-z0-9]+", str(error))
    return upper_snake(found.group()) if found else None


PLAIN = (
    (NotImplementedError, "unsupported"),
    (AttributeError, "no such member"),
    (TypeError, "type"),
    ((ValueError, OverflowError, LookupError), "value"),
    (MemoryError, "memory"),
    (AssertionError, "assertion"),
    (RuntimeError, "state"),
)


def category(error):
    """What kind of error it is, in words that are the same for all libraries."""
    name = cuda_name(error)
    if isinstance(error, MemoryError) or name in ("OUT_OF_MEMORY", "MEMORY_ALLOCATION"):
        return "memory"
    if name and not isinstance(error, (ValueError, TypeError, AssertionError)):
        return "cuda:" + name
    if isinstance(error, OSError):
        return "os:" + errno.errorcode.get(error.errno, "unknown")
    for kinds, word in PLAIN:
        if isinstance(error, kinds):
            return word
    return type(error).__name__


def plain(value):
    """A library's own kind of number as a number, anything else as text."""
    try:
        return int(value)
    except (TypeError, ValueError):
        return str(value)


class Recorder:
    """Writes the facts of one library."""

    def __init__(self, library, out=sys.stdout):
        self.library, self.out = library, out

    def write(self, **fields):
        print(json.dumps({"library": self.library, **fields}, default=plain), file=self.out, flush=True)

    def about(self, text):
        self.write(about=text)

    def missing(self, reason):
        self.write(missing=str(reason)[:300])

    def fact(self, name, operation):
        """Writes what the operation returns, or the kind of error it throws; returns what it returned, or None."""
        try:
            value = operation()
        except Exception as error:
            self.write(fact=name, error=category(error), message=f"{type(error).__name__}: {error}"[:300])
        else:
            self.write(fact=name, value=value)
            return value
        return None

    def outcome(self, name, operation):
        """As fact, for an operation of which only matters whether it throws; returns what it returned, or None."""
        kept = []
        self.fact(name, lambda: kept.append(operation()) or "no error")
        return kept[0] if kept else None


def threshold(number):
    """A release threshold or limit as Cuvette names it."""
    return "all" if number >= ALL >> 1 else number
