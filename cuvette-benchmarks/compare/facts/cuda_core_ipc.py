"""What cuda.core does between two processes: python3 cuda_core_ipc.py; starts itself again as the importer."""
import json
import os
import socket
import subprocess
import sys
import uuid

import cuda_core_common as common
from cuda_core_common import (  # fmt: skip
    MIB, Buffer, DeviceMemoryResource, IPCAllocationHandle, PinnedMemoryResource, fact, first_byte, imported, ok,
    outcome, put, range_size, resource, stream,
)

WAIT_S = 20


def parts(buffer):
    """A descriptor as the process library would send it: its bytes and its size."""
    return buffer.ipc_descriptor.__reduce__()[1]


def exporter(kind, connection):
    mr, other = resource(kind, "ipc"), resource(kind, "ipc")
    large, small, foreign = (each.allocate(size, stream=stream) for each, size in ((mr, MIB), (mr, 1000), (other, MIB)))
    put(large, 0x11)
    stream.sync()
    named = {"large": large, "small": small, "foreign": foreign}
    descriptors = {name: [parts(each)[0].hex(), parts(each)[1]] for name, each in named.items()}
    message = {"kind": kind, "uuid": str(mr.uuid), "descriptors": descriptors}
    socket.send_fds(connection, [json.dumps(message).encode()], [int(mr.allocation_handle)])
    fact(f"ipc.{kind}.importer_finished", lambda: connection.recv(100).decode())
    fact(f"ipc.{kind}.exporter_sees_importers_write", lambda: first_byte(large))
    outcome(f"ipc.{kind}.own_descriptor_in_own_process", lambda: imported(mr, parts(large)[0], MIB).close())


def parent():
    here, there = socket.socketpair()
    here.settimeout(WAIT_S)
    command = [sys.executable, "-B", os.path.abspath(__file__), "importer", str(there.fileno())]
    child = subprocess.Popen(command, pass_fds=[there.fileno()])
    there.close()
    try:
        for kind in ("device", "pinned"):
            outcome(f"ipc.{kind}.all", lambda: exporter(kind, here))
    finally:
        here.close()
        try:
            child.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            child.kill()


def from_handle(kind, handle):
    if kind == "device":
        return DeviceMemoryResource.from_allocation_handle(common.device, handle)
    return PinnedMemoryResource.from_allocation_handle(handle)


def importer(connection):
    connection.settimeout(WAIT_S)
    for _ in range(2):
        text, descriptors, _, _ = socket.recv_fds(connection, 1 << 16, 1)
        if not text:
            return
        message = json.loads(text)
        outcome(f"ipc.{message['kind']}.importer.all", lambda: importing(message, descriptors[0]))
        connection.send(b"finished")


def importing(message, descriptor):
    kind, key = message["kind"], uuid.UUID(message["uuid"])
    prefix = f"ipc.{kind}.mapped"
    handle = lambda: IPCAllocationHandle._init(os.dup(descriptor), key)  # noqa: E731
    outcome(f"error.{kind}.from_registry.before_import", lambda: type_of(kind).from_registry(key))
    mr = outcome(prefix + ".made", lambda: from_handle(kind, handle()))
    if mr is not None:
        of_resource(prefix, kind, mr, key, handle)
        stored = {name: (bytes.fromhex(payload), size) for name, (payload, size) in message["descriptors"].items()}
        outcome(f"ipc.{kind}.buffers.all", lambda: of_buffers(f"ipc.{kind}.buffer", mr, stored))
        outcome(f"ipc.{kind}.bad.all", lambda: of_errors(f"error.{kind}.mapped", mr, stored))
        outcome(prefix + ".close", mr.close)
        fact(prefix + ".closed.is_handle_owned", lambda: mr.is_handle_owned)
    raw = outcome(f"ipc.{kind}.raw.made", lambda: from_handle(kind, descriptor))
    if raw is not None:
        fact(f"ipc.{kind}.raw.has_uuid", lambda: raw.uuid is not None)
        fact(f"ipc.{kind}.raw.is_mapped", lambda: raw.is_mapped)
        outcome(f"ipc.{kind}.raw.callers_descriptor_is_open", lambda: os.fstat(descriptor))
        raw.close()


def type_of(kind):
    return DeviceMemoryResource if kind == "device" else PinnedMemoryResource


def of_resource(prefix, kind, mr, key, handle):
    for name in ("is_mapped", "is_handle_owned", "is_ipc_enabled", "device_id", "is_device_accessible",
                 "is_host_accessible"):  # fmt: skip
        fact(f"{prefix}.{name}", lambda: getattr(mr, name))
    if kind == "pinned":
        fact(prefix + ".numa_id", lambda: mr.numa_id)
    fact(prefix + ".uuid_is_the_exporters", lambda: mr.uuid == key)
    fact(prefix + ".from_registry_is_it", lambda: type_of(kind).from_registry(key) is mr)
    fact(prefix + ".second_import_is_it", lambda: from_handle(kind, handle()) is mr)
    fact(prefix + ".register_again_is_it", lambda: mr.register(key) is mr)
    outcome(f"error.{kind}.mapped.register_other_uuid", lambda: mr.register(uuid.uuid4()))
    outcome(f"error.{kind}.mapped.allocate", lambda: mr.allocate(MIB, stream=stream))
    outcome(f"error.{kind}.mapped.allocation_handle", lambda: int(mr.allocation_handle))
    other = "pinned" if kind == "device" else "device"
    outcome(f"error.{kind}.mapped.import_as_other_class", lambda: from_handle(other, handle()))


def of_buffers(prefix, mr, stored):
    buffer = imported(mr, *stored["large"])
    fact(prefix + ".size", lambda: buffer.size)
    fact(prefix + ".is_mapped", lambda: buffer.is_mapped)
    fact(prefix + ".device_id", lambda: buffer.device_id)
    fact(prefix + ".is_host_accessible", lambda: buffer.is_host_accessible)
    fact(prefix + ".range_size", lambda: range_size(buffer))
    fact(prefix + ".reads_exporters_write", lambda: first_byte(buffer))
    again = outcome(prefix + ".import_again", lambda: imported(mr, *stored["large"]))
    if again is not None:
        fact(prefix + ".import_again.same_handle", lambda: int(again.handle) == int(buffer.handle))
        outcome(prefix + ".import_again.close", again.close)
        fact(prefix + ".import_again.first_still_reads", lambda: first_byte(buffer))
    small = imported(mr, *stored["small"])
    fact(prefix + ".small.size", lambda: small.size)
    fact(prefix + ".small.range_size", lambda: range_size(small))
    fact(prefix + ".part.size", lambda: imported(mr, stored["small"][0], 500).size)
    outcome(prefix + ".export_again", lambda: buffer.ipc_descriptor)
    outcome(prefix + ".write", lambda: put(buffer, 0x22))
    stream.sync()
    outcome(prefix + ".close", buffer.close)
    small.close()
    stream.sync()


def of_errors(prefix, mr, stored):
    payload, size = stored["large"]
    outcome(prefix + ".descriptor.truncated", lambda: imported(mr, payload[:32], size))
    outcome(prefix + ".descriptor.oversized", lambda: imported(mr, payload, size * 100))
    outcome(prefix + ".descriptor.negative_size", lambda: imported(mr, payload, -1))
    outcome(prefix + ".descriptor.garbage", lambda: imported(mr, b"\xa5" * 64, size))
    outcome(prefix + ".descriptor.of_another_pool", lambda: imported(mr, *stored["foreign"]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        importer(socket.socket(fileno=int(sys.argv[2])))
    else:
        common.about()
        outcome("ipc.all", parent)
