"""What cuda.core says of advice on managed memory and of prefetches: python3 cuda_core_managed.py."""
import cuda_core_common as common
from cuda.core import Host
from cuda.core._memory._managed_buffer import ManagedBuffer
from cuda_core_common import MIB, device, drv, fact, ok, outcome, resource, stream

LAST_TYPE, LAST_ID = 7, 8
WORDS = {0: "none", 1: "device", 2: "host", 3: "host_numa"}


def text(location):
    """A location as text: none, host, host_numa:N, device:N."""
    if location is None:
        return "none"
    if isinstance(location, Host):
        return "host" if location.numa_id is None else f"host_numa:{location.numa_id}"
    return f"device:{int(location.device_id)}"


def last_prefetch(buffer):
    if hasattr(buffer, "last_prefetch_location"):
        return text(buffer.last_prefetch_location)
    kind, number = (range_attribute(buffer, each) for each in (LAST_TYPE, LAST_ID))
    word = WORDS.get(kind, "none")  # the driver's other words say that there is no one location
    return f"{word}:{number}" if word in ("device", "host_numa") else word


def range_attribute(buffer, attribute):
    attribute = drv.CUmem_range_attribute(attribute)
    return int(ok(drv.cuMemRangeGetAttribute(4, attribute, drv.CUdeviceptr(int(buffer.handle)), buffer.size)))


def set_member(buffer, name, value):
    setattr(buffer, name, value)


def advice(prefix, buffer):
    mostly = lambda: buffer.read_mostly  # noqa: E731
    fact(prefix + ".read_mostly.birth", mostly)
    for value in (True, False):
        outcome(f"{prefix}.read_mostly.set_{value}".lower(), lambda: set_member(buffer, "read_mostly", value))
        fact(f"{prefix}.read_mostly.after_{value}".lower(), mostly)
    preferred = lambda: text(buffer.preferred_location)  # noqa: E731
    fact(prefix + ".preferred.birth", preferred)
    places = {"device": device, "host": Host(), "host_numa": Host(numa_id=0), "none": None}
    for name, value in places.items():
        outcome(f"{prefix}.preferred.set_{name}", lambda: set_member(buffer, "preferred_location", value))
        fact(f"{prefix}.preferred.after_{name}", preferred)
    accessed_by(prefix + ".accessed_by", buffer)
    prefetches(prefix + ".prefetch", buffer)


def accessed_by(prefix, buffer):
    now = lambda: sorted(text(each) for each in buffer.accessed_by)  # noqa: E731
    fact(prefix + ".birth", now)
    steps = {
        "add_device": lambda: buffer.accessed_by.add(device),
        "add_host": lambda: buffer.accessed_by.add(Host()),
        "add_host_numa": lambda: buffer.accessed_by.add(Host(numa_id=0)),
        "discard_device": lambda: buffer.accessed_by.discard(device),
        "discard_again": lambda: buffer.accessed_by.discard(device),
        "assign_device": lambda: set_member(buffer, "accessed_by", [device]),
        "assign_none": lambda: set_member(buffer, "accessed_by", []),
    }
    for name, step in steps.items():
        outcome(f"{prefix}.{name}", step)
        fact(f"{prefix}.{name}.reads", now)


def prefetches(prefix, buffer):
    fact(prefix + ".birth", lambda: last_prefetch(buffer))
    for name, where in {"device": device, "host": Host(), "host_numa": Host(numa_id=0)}.items():
        outcome(f"{prefix}.{name}", lambda: (buffer.prefetch(where, stream=stream), stream.sync()))
        fact(f"{prefix}.{name}.last", lambda: last_prefetch(buffer))
    outcome(prefix + ".no_such_node", lambda: (buffer.prefetch(Host(numa_id=4096), stream=stream), stream.sync()))


def plain():
    pointer = ok(drv.cuMemAllocManaged(2 * MIB, drv.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value))
    advice("managed.plain", ManagedBuffer.from_handle(int(pointer), 2 * MIB))
    ok(drv.cuMemFree(pointer))


def pooled():
    mr = resource("managed", "own")
    buffer = mr.allocate(2 * MIB, stream=stream)
    stream.sync()
    advice("managed.pooled", buffer)
    buffer.close()
    mr.close()


def not_managed():
    device_memory = resource("device", "own").allocate(2 * MIB, stream=stream)
    stream.sync()
    wrong = ManagedBuffer.from_handle(int(device_memory.handle), 2 * MIB)
    outcome("error.managed.advice_on_device_memory", lambda: set_member(wrong, "read_mostly", True))
    outcome("error.managed.prefetch_of_device_memory", lambda: wrong.prefetch(device, stream=stream))


if __name__ == "__main__":
    common.about()
    outcome("managed.plain.all", plain)
    outcome("managed.pooled.all", pooled)
    not_managed()
