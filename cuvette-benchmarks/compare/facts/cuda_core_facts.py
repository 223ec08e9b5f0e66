"""What cuda.core says and does, section by section: python3 cuda_core_facts.py SECTION."""
import os
import sys
import uuid

import cuda_core_common as common
from cuda_core_common import (  # fmt: skip
    KINDS, MIB, NOT_A_DEVICE, WAYS, DeviceMemoryResource, DeviceMemoryResourceOptions, IPCAllocationHandle,
    ManagedMemoryResource, ManagedMemoryResourceOptions, PinnedMemoryResource, PinnedMemoryResourceOptions,
    closed_descriptor, device, drv, fact, filled, from_handle, imported, ok, outcome, pool_of, range_size, read,
    resource, set_number, stream,
)


def current_pool(kind):
    if kind == "device":
        return int(ok(drv.cuDeviceGetMemPool(0)))
    location = drv.CUmemLocation()
    pinned = kind == "pinned"
    location.type = drv.CUmemLocationType(2 if pinned else 0)  # HOST, or NONE
    location.id = 0
    types = drv.CUmemAllocationType
    managed = getattr(types, "CU_MEM_ALLOCATION_TYPE_MANAGED", None)
    return int(ok(drv.cuMemGetMemPool(location, types.CU_MEM_ALLOCATION_TYPE_PINNED if pinned else managed)))


def members(prefix, kind, mr):
    for name in ("is_device_accessible", "is_host_accessible", "device_id", "is_handle_owned", "is_ipc_enabled",
                 "is_mapped"):  # fmt: skip
        fact(f"{prefix}.{name}", lambda: getattr(mr, name))
    if kind == "pinned":
        fact(prefix + ".numa_id", lambda: mr.numa_id)
    fact(prefix + ".has_uuid", lambda: mr.uuid is not None)
    fact(prefix + ".handle_is_set", lambda: int(mr.handle) != 0)


def section_resources():
    for kind, how in WAYS:
        prefix = f"{kind}.{how}"
        mr = outcome(prefix + ".made", lambda: resource(kind, how))
        if mr is None:
            continue
        members(prefix, kind, mr)
        fact(prefix + ".handle_is_current_pool", lambda: int(mr.handle) == current_pool(kind))
        fact(prefix + ".allocation_handle", lambda: int(mr.allocation_handle) >= 0)
        outcome(prefix + ".close", mr.close)
        fact(prefix + ".closed.is_handle_owned", lambda: mr.is_handle_owned)
        outcome(prefix + ".close_again", mr.close)


SWITCHES = ("reuse_follow_event_dependencies", "reuse_allow_opportunistic", "reuse_allow_internal_dependencies")
BYTES = ("reserved_mem_current", "reserved_mem_high", "used_mem_current", "used_mem_high")


def section_birth():
    for kind, how in WAYS:
        mr = resource(kind, how) if fits(kind, how) else None
        if mr is None:
            continue
        for name in SWITCHES + ("release_threshold",) + BYTES:
            fact(f"{kind}.{how}.birth.{name}", lambda: read(mr.attributes, name))
        mr.close()


def fits(kind, how):
    """Whether the machine can make it; the section of the resources says why not."""
    try:
        resource(kind, how).close()
        return True
    except Exception:
        return False


def look(prefix, mr):
    stream.sync()
    for name in BYTES:
        fact(f"{prefix}.{name}", lambda: read(mr.attributes, name))


def sequence(kind, name, keep):
    """The same allocations and frees on a fresh pool, and all its numbers after each step."""
    prefix = f"{kind}.sequence.{name}"
    mr = resource(kind, "own")
    set_number(mr, 4, keep)
    fact(prefix + ".release_threshold", lambda: read(mr.attributes, "release_threshold"))
    first = mr.allocate(MIB, stream=stream)
    look(prefix + ".one", mr)
    second = mr.allocate(3 * MIB + 1, stream=stream)
    look(prefix + ".two", mr)
    first.close()
    look(prefix + ".one_closed", mr)
    second.close()
    look(prefix + ".both_closed", mr)
    outcome(prefix + ".trim", lambda: ok(drv.cuMemPoolTrimTo(pool_of(mr), 0)))
    look(prefix + ".trimmed", mr)
    outcome(prefix + ".reset_highs", lambda: [set_number(mr, each, 0) for each in (6, 8)])
    look(prefix + ".reset", mr)
    mr.close()


def set_switch(mr, attribute, number):
    ok(drv.cuMemPoolSetAttribute(pool_of(mr), drv.CUmemPool_attribute(attribute), number))


def section_sequence():
    for kind in KINDS:
        outcome(f"{kind}.sequence.keep", lambda: sequence(kind, "keep", (1 << 64) - 1))
        outcome(f"{kind}.sequence.release", lambda: sequence(kind, "release", 0))
        outcome(f"{kind}.own.set.all", lambda: switches(kind))


def switches(kind):
    mr = resource(kind, "own")
    for number, name in enumerate(SWITCHES, 1):
        outcome(f"{kind}.own.set.{name}", lambda: set_switch(mr, number, 0))
        fact(f"{kind}.own.set.{name}.reads", lambda: read(mr.attributes, name))
    mr.close()


def section_buffers():
    for kind in KINDS:
        outcome(kind + ".buffer.all", lambda: buffers(kind))


def buffers(kind):
    mr, prefix = resource(kind, "own"), kind + ".buffer"
    buffer = mr.allocate(1000, stream=stream)
    fact(prefix + ".size", lambda: buffer.size)
    fact(prefix + ".handle_is_set", lambda: int(buffer.handle) != 0)
    fact(prefix + ".device_id", lambda: buffer.device_id)
    fact(prefix + ".is_device_accessible", lambda: buffer.is_device_accessible)
    fact(prefix + ".is_host_accessible", lambda: buffer.is_host_accessible)
    fact(prefix + ".is_managed", lambda: buffer.is_managed)
    fact(prefix + ".is_mapped", lambda: buffer.is_mapped)
    fact(prefix + ".range_size", lambda: range_size(buffer))
    fact(prefix + ".fill_reads", lambda: filled(buffer))
    outcome(prefix + ".descriptor", lambda: buffer.ipc_descriptor)
    outcome(prefix + ".close", buffer.close)
    fact(prefix + ".closed.size", lambda: buffer.size)
    fact(prefix + ".closed.handle_is_set", lambda: int(buffer.handle or 0) != 0)
    outcome(prefix + ".close_again", buffer.close)
    zero(kind, mr)
    deallocate(kind, mr)
    mr.close()


def zero(kind, mr):
    buffer = outcome(kind + ".zero.allocate", lambda: mr.allocate(0, stream=stream))
    if buffer is not None:
        fact(kind + ".zero.size", lambda: buffer.size)
        fact(kind + ".zero.handle_is_set", lambda: int(buffer.handle or 0) != 0)
        fact(kind + ".zero.used_mem_current", lambda: stream.sync() or mr.attributes.used_mem_current)
        outcome(kind + ".zero.close", buffer.close)


def deallocate(kind, mr):
    pointer = ok(drv.cuMemAllocFromPoolAsync(MIB, pool_of(mr), drv.CUstream(int(stream.handle))))
    fact(kind + ".deallocate.before", lambda: stream.sync() or mr.attributes.used_mem_current)
    outcome(kind + ".deallocate", lambda: mr.deallocate(int(pointer), MIB, stream=stream))
    fact(kind + ".deallocate.after", lambda: stream.sync() or mr.attributes.used_mem_current)


def section_errors():
    for kind in KINDS:
        outcome(f"error.{kind}.all", lambda: refusals(kind, resource(kind, "own")))
    for node in (-1, NOT_A_DEVICE):
        for ipc in (False, True):
            options = lambda: PinnedMemoryResourceOptions(ipc_enabled=ipc, numa_id=node)  # noqa: E731
            outcome(f"error.pinned.{'ipc' if ipc else 'own'}.numa_id.{node}", lambda: PinnedMemoryResource(options()))
    limited = {
        "device": lambda size: DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=size)),
        "pinned": lambda size: PinnedMemoryResource(PinnedMemoryResourceOptions(max_size=size)),
    }
    for kind, made in limited.items():
        outcome(f"error.{kind}.max_size.negative", lambda: made(-1))
        outcome(f"error.{kind}.max_size.exceeded", lambda: made(32 * MIB).allocate(256 * MIB, stream=stream))
    outcome("error.device.no_such_device", lambda: DeviceMemoryResource(NOT_A_DEVICE, DeviceMemoryResourceOptions()))


def refusals(kind, mr):
    prefix = f"error.{kind}"
    outcome(prefix + ".allocate.negative", lambda: mr.allocate(-1, stream=stream))
    outcome(prefix + ".allocate.huge", lambda: mr.allocate(1 << 60, stream=stream))
    outcome(prefix + ".allocate.without_stream", lambda: mr.allocate(MIB).close())
    outcome(prefix + ".allocate.null_stream", lambda: mr.allocate(MIB, stream=None).close())
    capturing(prefix, mr)
    if kind != "managed":
        other = mr.allocate(MIB, stream=stream)
        outcome(prefix + ".not_ipc.allocation_handle", lambda: mr.allocation_handle)
        outcome(prefix + ".not_ipc.descriptor", lambda: other.ipc_descriptor)
        outcome(prefix + ".not_ipc.import", lambda: imported(mr, b"\xa5" * 64, MIB))
        outcome(prefix + ".from_registry.unknown", lambda: type(mr).from_registry(uuid.uuid4()))
        outcome(prefix + ".from_allocation_handle.negative", lambda: from_handle(kind, -1))
        outcome(prefix + ".from_allocation_handle.closed", lambda: from_handle(kind, closed_descriptor()))
        with open("/dev/null", "rb") as null:
            outcome(prefix + ".from_allocation_handle.dev_null", lambda: from_handle(kind, null.fileno()))
            outcome(prefix + ".from_allocation_handle.keeps_callers", lambda: os.fstat(null.fileno()))
        other.close()


def capturing(prefix, mr):
    busy = device.create_stream()
    raw = drv.CUstream(int(busy.handle))
    ok(drv.cuStreamBeginCapture(raw, drv.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
    outcome(prefix + ".allocate.capturing", lambda: mr.allocate(MIB, stream=busy))
    end = lambda: ok(drv.cuGraphDestroy(ok(drv.cuStreamEndCapture(raw))))  # noqa: E731
    outcome(prefix + ".allocate.capturing.capture_lives", end)
    busy.close()


def section_descriptors():
    """Bad descriptors, at a resource that could import good ones."""
    outcome("error.allocation_handle.negative", lambda: IPCAllocationHandle._init(-1, None))
    for kind in ("device", "pinned"):
        outcome(f"error.{kind}.descriptors.all", lambda: descriptors(kind, resource(kind, "ipc")))


def descriptors(kind, mr):
    outcome(f"error.{kind}.descriptor.truncated", lambda: imported(mr, b"\0" * 8, MIB))
    outcome(f"error.{kind}.descriptor.empty", lambda: imported(mr, b"", MIB))
    outcome(f"error.{kind}.descriptor.garbage", lambda: imported(mr, b"\xa5" * 64, MIB))
    outcome(f"error.{kind}.register.own", lambda: mr.register(mr.uuid))
    fact(f"{kind}.register.own.from_registry_is_it", lambda: type(mr).from_registry(mr.uuid) is mr)
    handle = mr.allocation_handle
    fact(f"{kind}.allocation_handle.uuid_is_its", lambda: handle.uuid == mr.uuid)
    fact(f"{kind}.allocation_handle.same_again", lambda: int(mr.allocation_handle) == int(handle))
    outcome(f"{kind}.allocation_handle.close", handle.close)
    outcome(f"error.{kind}.allocation_handle.closed", lambda: int(handle))
    mr.close()


def section_register():
    """Alone: some versions crash here."""
    mr = resource("device", "own")
    outcome("error.device.not_ipc.register", lambda: mr.register(uuid.uuid4()))
    mr = resource("pinned", "own")
    outcome("error.pinned.not_ipc.register", lambda: mr.register(uuid.uuid4()))


def closed_resource(kind):
    mr = resource(kind, "own")
    attributes = mr.attributes
    live = mr.allocate(MIB, stream=stream)
    outcome(f"{kind}.closed.close_with_live_buffer", mr.close)
    fact(f"{kind}.closed.live_buffer_reads", lambda: filled(live))
    outcome(f"{kind}.closed.live_buffer_close", lambda: (live.close(), stream.sync()))
    fact(f"{kind}.closed.attributes", lambda: attributes.used_mem_current >= 0)
    outcome(f"error.{kind}.closed.allocate", lambda: mr.allocate(MIB, stream=stream))


def section_closed_device():
    closed_resource("device")


def section_closed_pinned():
    closed_resource("pinned")


def section_closed_managed():
    closed_resource("managed")


def section_peers():
    devices = int(ok(drv.cuDeviceGetCount()))
    for how in ("current", "own"):
        mr, prefix = resource("device", how), f"device.{how}.peers"
        peers = lambda: sorted(int(each) for each in mr.peer_accessible_by)  # noqa: E731
        fact(prefix, peers)
        outcome(prefix + ".add_owner", lambda: mr.peer_accessible_by.add(0))
        fact(prefix + ".after_owner", peers)
        outcome(prefix + ".discard_owner", lambda: mr.peer_accessible_by.discard(0))
        outcome(prefix + ".add_no_such_device", lambda: mr.peer_accessible_by.add(NOT_A_DEVICE))
        outcome(prefix + ".add_negative", lambda: mr.peer_accessible_by.add(-1))
        if devices > 1:
            outcome(prefix + ".add_1", lambda: mr.peer_accessible_by.add(1))
            fact(prefix + ".with_1", peers)
            outcome(prefix + ".discard_1", lambda: mr.peer_accessible_by.discard(1))
            fact(prefix + ".without_1", peers)
        mr.close()


def place(found):
    """A preferred location as text."""
    if found is None:
        return "none"
    kind, number = found
    return str(kind) if number is None else f"{kind}:{number}"


def section_preferred():
    node = int(ok(drv.cuDeviceGetAttribute(drv.CUdevice_attribute(134), 0)))
    rows = {
        "none": (None, None), "minus_1": (-1, None), "number_0": (0, None), "minus_2": (-2, None),
        "device_0": (0, "device"), "device_none": (None, "device"), "device_negative": (-1, "device"),
        "device_4096": (NOT_A_DEVICE, "device"), "host": (None, "host"), "host_0": (0, "host"),
        "host_numa_0": (0, "host_numa"), "host_numa_negative": (-1, "host_numa"),
        "host_numa_4096": (NOT_A_DEVICE, "host_numa"), "unknown_type": (None, "nowhere"),
    }  # fmt: skip
    for name, (where, kind) in rows.items():
        prefer("managed.preferred." + name, where, kind, place)
    own_node = lambda found: place(found) == f"host_numa:{node}"  # noqa: E731
    prefer("managed.preferred.host_numa_of_device", None, "host_numa", own_node)


def prefer(name, where, kind, text):
    options = lambda: ManagedMemoryResourceOptions(preferred_location=where, preferred_location_type=kind)  # noqa: E731
    mr = outcome(name + ".made", lambda: ManagedMemoryResource(options()))
    if mr is not None:
        fact(name, lambda: text(mr.preferred_location))
        fact(name + ".device_id", lambda: mr.device_id)
        fact(name + ".allocates", lambda: filled(mr.allocate(MIB, stream=stream)))
        mr.close()


SECTIONS = {name[len("section_"):].replace("_", "-"): run for name, run in list(globals().items()) if
            name.startswith("section_")}  # fmt: skip


if __name__ == "__main__":
    common.about()
    SECTIONS[sys.argv[1]]()
