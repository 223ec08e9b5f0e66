"""What the programs about cuda.core share: a device, a stream, and every way to make a resource."""
import ctypes
import os
import sys

from recorder import DriverError, Recorder, threshold

MIB = 1 << 20
NOT_A_DEVICE = 4096
RECORDER = Recorder("cuda.core")
fact, outcome = RECORDER.fact, RECORDER.outcome

try:
    import cuda.core
    from cuda.bindings import driver as drv
    from cuda.core import (
        Buffer,
        Device,
        DeviceMemoryResource,
        DeviceMemoryResourceOptions,
        ManagedMemoryResource,
        ManagedMemoryResourceOptions,
        PinnedMemoryResource,
        PinnedMemoryResourceOptions,
    )
    from cuda.core._memory._ipc import IPCAllocationHandle, IPCBufferDescriptor  # noqa: F401

    device = Device(0)
    device.set_current()
    stream = device.create_stream()
except Exception as reason:
    RECORDER.missing(f"{type(reason).__name__}: {reason}")
    sys.exit(3)


def ok(result):
    """The values of a driver call that this program makes itself."""
    status, *values = result
    if int(status) != 0:
        raise DriverError(status.name)
    return values[0] if len(values) == 1 else values


def resource(kind, how):
    """Each way to make a resource; `numa0` names node 0, `ipc` asks for sharing."""
    ipc, node = how.startswith("ipc"), 0 if how.endswith("numa0") else None
    if kind == "device":
        options = None if how == "current" else DeviceMemoryResourceOptions(ipc_enabled=ipc)
        return DeviceMemoryResource(device, options)
    if kind == "pinned":
        options = None if how == "current" else PinnedMemoryResourceOptions(ipc_enabled=ipc, numa_id=node)
        return PinnedMemoryResource(options)
    return ManagedMemoryResource(None if how == "current" else ManagedMemoryResourceOptions())


def about():
    RECORDER.about(f"cuda.core {cuda.core.__version__}, driver {ok(drv.cuDriverGetVersion())}")


WAYS = [
    ("device", "current"), ("device", "own"), ("device", "ipc"),
    ("pinned", "current"), ("pinned", "own"), ("pinned", "own-numa0"), ("pinned", "ipc"), ("pinned", "ipc-numa0"),
    ("managed", "current"), ("managed", "own"),
]  # fmt: skip
KINDS = ("device", "pinned", "managed")


def read(attributes, name):
    value = getattr(attributes, name)
    return threshold(value) if name == "release_threshold" else value


def set_number(mr, attribute, number):
    attribute = drv.CUmemPool_attribute(attribute)
    try:
        ok(drv.cuMemPoolSetAttribute(pool_of(mr), attribute, drv.cuuint64_t(number)))
    except (AttributeError, TypeError):  # bindings that take numbers as they are
        ok(drv.cuMemPoolSetAttribute(pool_of(mr), attribute, number))


def pool_of(mr):
    return drv.CUmemoryPool(int(mr.handle))


def range_size(buffer):
    attribute = drv.CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_SIZE
    return int(ok(drv.cuPointerGetAttribute(attribute, drv.CUdeviceptr(int(buffer.handle)))))


def filled(buffer):
    """What the host reads after the device wrote 0x42."""
    buffer.fill(0x42, stream=stream)
    return first_byte(buffer)


def put(buffer, value):
    """Fills by the host where it can: cuda.core lets no device into its pools of host memory."""
    if buffer.is_host_accessible:
        stream.sync()
        ctypes.memset(int(buffer.handle), value, buffer.size)
    else:
        buffer.fill(value, stream=stream)


def first_byte(buffer):
    if buffer.is_host_accessible:
        stream.sync()
        return ctypes.string_at(int(buffer.handle), 1)[0]
    staging = PinnedMemoryResource().allocate(buffer.size, stream=stream)
    buffer.copy_to(staging, stream=stream)
    stream.sync()
    value = ctypes.string_at(int(staging.handle), 1)[0]
    staging.close()
    return value


def closed_descriptor():
    descriptor = os.open("/dev/null", os.O_RDONLY)
    os.close(descriptor)
    return descriptor


def from_handle(kind, handle):
    if kind == "device":
        return DeviceMemoryResource.from_allocation_handle(device, handle)
    return PinnedMemoryResource.from_allocation_handle(handle)


def imported(mr, payload, size):
    return Buffer.from_ipc_descriptor(mr, IPCBufferDescriptor._init(payload, size), stream=stream)
