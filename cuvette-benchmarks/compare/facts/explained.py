"""The differences that are meant: which fact, what Cuvette does, what the other library does, and why ours is better.

The three texts may have wildcards (fnmatch). `MISSING` stands for a fact that one side has not. An explanation only
holds for the two outcomes it names, so that it cannot hide another difference.
"""
from dataclasses import dataclass
from fnmatch import fnmatchcase

MISSING = "missing"
ANY = "*"


@dataclass(frozen=True)
class Explained:
    fact: str
    ours: str
    theirs: str
    why: str

    def fits(self, fact, ours, theirs):
        pairs = ((fact, self.fact), (ours, self.ours), (theirs, self.theirs))
        return all(fnmatchcase(text, pattern) for text, pattern in pairs)


KEEPS = (
    "A new pool keeps its memory until it is trimmed: with the driver's threshold of 0 all of it would go back at each "
    "synchronisation, which makes pools slow. The threshold can be set."
)
SHARED = "A pool that others share is taken as it is; its threshold is changed by whoever asks for that, not silently."
TYPED = "The compiler refuses it: there is no such text, type or combination to pass."
DEVICE = (
    "A buffer names the device of the stream it is ordered by, which its operations run on. The resource's deviceId() "
    "is -1, as cuda.core's."
)
HOST_ONLY = "The driver lets only the host into a pool of host memory; Cuvette lets the devices in, cuda.core nobody."
HUSK = "A closed object says that it is closed, and is not asked any further."

EXPLAINED = [
    Explained("*.own*.birth.release_threshold", '"all"', "0", KEEPS),
    Explained("*.ipc*.birth.release_threshold", '"all"', "0", KEEPS),
    Explained("device.current.birth.release_threshold", "0", '"all"', SHARED),
    Explained("async.sides.default_pools_threshold_unchanged", "true", "false", SHARED),
    Explained(
        "async.sides.current_pool_unchanged", "true", "false",
        "CuPy's constructor makes its pools current for the whole process; here nobody's current pool changes.",
    ),
    Explained(
        "async.sides.*", "true", "false",
        "CuPy allocates from whichever pool is current when it allocates; here it is the pool that was stated.",
    ),
    Explained(
        "async.limit.beyond_it_but_held", "raises memory", "no error",
        "CuPy's limit is soft: what the pool holds already may be used beyond it. Here the limit is hard.",
    ),
    Explained("error.async.create", "no error", "raises unsupported", "CuPy makes no pool of its own; Cuvette does."),
    Explained(
        "error.async.empty_list", "raises value", ANY,
        "As many choices as devices are required in both directions, and said with both numbers.",
    ),
    Explained(
        "error.async.long_list", "raises value", "no error",
        "CuPy ignores what is too many although its documentation requires the number of devices.",
    ),
    Explained(
        "error.async.handle_0", "raises value", ANY,
        "A number that cannot be a handle is refused before the driver sees it.",
    ),
    Explained("error.async.unknown_choice", MISSING, "raises value", TYPED),
    Explained("error.async.wrong_type", MISSING, "raises *", TYPED),
    Explained("error.async.set_limit.both", MISSING, "raises value", TYPED),
    Explained(
        "error.async.malloc_capturing", "raises state", ANY,
        "Allocating in a capture would make the address part of the graph; it is refused by name.",
    ),
    Explained("*.buffer.is_device_accessible", MISSING, "true", "Every Buffer is memory that a device can use."),
    Explained("pinned.buffer.device_id", "0", "-1", DEVICE),
    Explained("managed.buffer.device_id", "0", "-1", DEVICE),
    Explained("ipc.pinned.buffer.device_id", "0", "-1", DEVICE),
    Explained("*.buffer.closed.*", ANY, ANY, HUSK + " Here its last size and address stay readable, for messages."),
    Explained("error.*.closed.allocate", "raises state", "raises cuda:*", HUSK),
    Explained("error.*.closed.allocate", "raises state", "raises type", HUSK),
    Explained("error.*.closed.allocate", "raises state", MISSING, HUSK + " cuda.core's process may end there."),
    Explained(
        "error.*.allocate.without_stream", "no error", "raises type",
        "Left out, the stream is this thread's current one, which always exists here.",
    ),
    Explained("error.*.allocate.null_stream", MISSING, "raises *", "A stream is never null; the null checker says so."),
    Explained(
        "error.*.not_ipc.register", "raises state", MISSING, "Some versions of cuda.core end the process there."),
    Explained("error.*.from_registry.*", "raises no such element", "raises state",
              "The Java exception for what a table does not hold; the message names the UUID."),
    Explained("error.*.mapped.allocate", "raises unsupported", "raises type",
              "The Java exception for what an object can never do."),
    Explained("error.*.mapped.register_other_uuid", "raises state", "raises assertion",
              "A check that also works where assertions are off."),
    Explained("error.*.mapped.register_other_uuid", "raises value", "raises assertion",
              "A check that also works where assertions are off."),
    Explained("error.*.mapped.import_as_other_class", "raises value", "raises type",
              "The Java exception for a wrong argument."),
    Explained("error.*.allocation_handle.closed", "raises state", "raises value",
              "The Java exception for an object that is closed."),
    Explained("error.*.mapped.allocation_handle", ANY, "raises *",
              "cuda.core closes the handle when it has imported; see the guide for passing a pool on."),
    Explained("error.*.from_allocation_handle.negative", "raises value", "raises os:*",
              "A number that cannot be a descriptor is refused before the system is asked."),
    Explained("error.*.from_allocation_handle.closed", "raises value", "raises os:*",
              "A descriptor that is not open is a wrong argument; the message says its number."),
    Explained("error.*.from_allocation_handle.dev_null", "raises cuda:*", "raises cuda:*",
              "The driver says what it takes a foreign descriptor for; both pass it on."),
    Explained("error.*.descriptor.garbage", "raises value", "raises cuda:*",
              "Descriptors have a magic number and a checksum; garbage never reaches the driver."),
    Explained("error.*.not_ipc.import", "raises state", "raises value",
              "That the resource is not for sharing is said first."),
    Explained("error.managed.advice_on_device_memory", MISSING, "raises *", TYPED),
    Explained("error.managed.prefetch_of_device_memory", MISSING, "raises *", TYPED),
    Explained("managed.*.allocation_handle", "raises state", "raises no such member",
              "All three resources have the method; managed memory cannot be shared, and that is what it says."),
    Explained("managed.*.prefetch.*", ANY, "raises type",
              "cuda.core reads the last prefetch location from 1.3 on; 1.2 refuses the driver's attribute."),
    Explained("managed.pooled.accessed_by.discard*", "no error", "raises cuda:NOT_SUPPORTED",
              "Discarding what is not in the set changes nothing and asks the driver for nothing."),
    Explained("ipc.pinned.mapped.numa_id", "-1", "*",
              "The driver does not tell where another process's pool is; -1 says that."),
    Explained("pinned.buffer.fill_reads", "66", "raises cuda:INVALID_VALUE",
              HOST_ONLY),
    Explained("pinned.closed.live_buffer_reads", "66", "raises cuda:INVALID_VALUE",
              HOST_ONLY),
    Explained("managed.preferred.device_4096.made", "raises value", "raises cuda:*",
              "That there is no such device is said before the driver is asked."),
    Explained("managed.*.accessed_by.add_host_numa", "raises value", "raises cuda:*",
              "The advice cannot be about a node; refused before the driver is asked."),
]  # fmt: skip


CRASHES = {
    ("cuda.core", "register"): "Registering a resource that is not for sharing ends the process in some versions.",
    ("cuda.core", "closed-device"): "Allocating from a closed resource is not guarded.",
    ("cuda.core", "closed-pinned"): "Allocating from a closed resource is not guarded.",
    ("cuda.core", "closed-managed"): "Allocating from a closed resource is not guarded.",
}


def crash(library, section, status):
    """Why a program of another library may be ended by a signal there, or None."""
    return CRASHES.get((library, section)) if status < 0 else None


def unused(rows):
    """The explanations that no fact needed, rows of (fact, ours, theirs): what they excuse may be gone."""
    return [each for each in EXPLAINED if not any(each.fits(*row) for row in rows)]


def reason(fact, ours, theirs):
    """Why the two outcomes may differ, or None."""
    return next((each.why for each in EXPLAINED if each.fits(fact, ours, theirs)), None)
