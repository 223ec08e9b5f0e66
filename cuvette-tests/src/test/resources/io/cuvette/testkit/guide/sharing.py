"""The programs of docs/guide/sharing.md in Python, with cuda.core: sharing.py produce|consume|echo SOCKET.

Either shares memory with the other program in Java. Messages and descriptors are those of IpcChannel; only the
driver's bytes in them, and a descriptor of the system, come from CUDA.
"""
import array
import os
import socket
import struct
import sys
import time
import uuid

MESSAGE, POOL, BUFFER, EVENT = 1, 2, 3, 4  # kinds of messages
FRAME = struct.Struct(">IBBHI")  # magic number, version, kind, number of handles, bytes that follow
BUFFER_FIELDS = struct.Struct(">IHBBqq16s16s64s")  # header, kind, unused, offset, size, process, device, handle
EVENT_FIELDS = struct.Struct(">IHBB16s16s64s")  # header, blocking, unused, process, device, handle
FRAME_MAGIC, BUFFER_MAGIC, EVENT_MAGIC = 0x43564950, 0x43564244, 0x43564544
DEVICE_POOL = 1
PROCESS = uuid.uuid4().bytes
BYTES, PART = 1 << 20, 1000
PATIENCE_SECONDS = 30


def checksum(data):
    """CRC-32C."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return struct.pack(">I", crc ^ 0xFFFFFFFF)


def send(channel, kind, content=b"", handle=None):
    """Sends a message; a handle is the number of a descriptor, and the UUID of its pool."""
    handles = b"" if handle is None else b"\1" + handle[1].bytes
    frame = FRAME.pack(FRAME_MAGIC, 1, kind, 0 if handle is None else 1, len(handles) + len(content))
    rights = [] if handle is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [handle[0]]))]
    data = frame + handles + content
    sent = channel.sendmsg([data], rights)
    channel.sendall(data[sent:])


def receive(channel, kind):
    """The content of a message, and its handle if there is one."""
    descriptors = []

    def read(count):
        data = b""
        while len(data) < count:
            part, rights, _, _ = channel.recvmsg(count - len(data), socket.CMSG_SPACE(4))
            if not part:
                raise EOFError("the other process is gone")
            data += part
            for _, _, numbers in rights:
                descriptors.extend(array.array("i", numbers))
        return data

    magic, version, found, handles, following = FRAME.unpack(read(FRAME.size))
    assert (magic, version, found) == (FRAME_MAGIC, 1, kind), (magic, version, found)
    content = read(following)
    if handles == 0:
        return content
    return content[17:], (descriptors[0], uuid.UUID(bytes=content[1:17]))


def buffer_descriptor(handle, size, device, process=PROCESS):
    value = BUFFER_FIELDS.pack(BUFFER_MAGIC, 1, DEVICE_POOL, 0, 0, size, process, device, handle)
    return value + checksum(value)


def event_descriptor(handle, blocking, device, process=PROCESS):
    value = EVENT_FIELDS.pack(EVENT_MAGIC, 1, blocking, 0, process, device, handle)
    return value + checksum(value)


def opened(value, fields, magic):
    """The fields of a descriptor behind its header."""
    found = fields.unpack(value[:-4])
    assert found[:2] == (magic, 1) and value[-4:] == checksum(value[:-4]), "no descriptor"
    return found[2:]


def connected(path):
    """Connects, as soon as the other program listens."""
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        channel = socket.socket(socket.AF_UNIX)
        try:
            channel.connect(path)
            return channel
        except (FileNotFoundError, ConnectionRefusedError):
            channel.close()
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def listening(path):
    listener = socket.socket(socket.AF_UNIX)
    os.umask(0o177)  # this user alone
    listener.bind(path)
    listener.listen(1)
    print("listening", flush=True)
    channel, _ = listener.accept()
    os.unlink(path)
    return channel


def echo(path):
    """Takes what a producer sends to pieces, and sends it back; needs no CUDA."""
    channel = connected(path)
    _, handle = receive(channel, POOL)
    send(channel, POOL, handle=handle)
    kind, _, offset, size, process, device, data = opened(receive(channel, BUFFER), BUFFER_FIELDS, BUFFER_MAGIC)
    assert kind == DEVICE_POOL and offset == 0
    send(channel, BUFFER, buffer_descriptor(data, size, device, process))
    blocking, _, process, device, data = opened(receive(channel, EVENT), EVENT_FIELDS, EVENT_MAGIC)
    send(channel, EVENT, event_descriptor(data, blocking, device, process))
    receive(channel, MESSAGE)
    send(channel, MESSAGE, b"done")


def start():
    """The device, current, a stream of it, and its UUID."""
    from cuda.core import Device

    device = Device(int(os.environ.get("DEVICE", "0")))
    device.set_current()
    return device, device.create_stream(), uuid.UUID(device.uuid.removeprefix("GPU-")).bytes


def recorded(stream):
    """An event behind the work of a stream, which other processes can import."""
    from cuda.core import EventOptions

    return stream.record(options=EventOptions(ipc_enabled=True))


def sent_event(channel, event, device_uuid):
    handle, blocking = event.ipc_descriptor.__reduce__()[1]
    send(channel, EVENT, event_descriptor(handle, blocking, device_uuid))


def received_event(channel):
    from cuda.core import Event
    from cuda.core._event import IPCEventDescriptor

    blocking, _, _, _, handle = opened(receive(channel, EVENT), EVENT_FIELDS, EVENT_MAGIC)
    return Event.from_ipc_descriptor(IPCEventDescriptor._init(handle, bool(blocking)))


def values(buffer, stream):
    """What the host reads of a buffer."""
    import ctypes

    from cuda.core import LegacyPinnedMemoryResource

    host = LegacyPinnedMemoryResource().allocate(buffer.size, stream=stream)
    buffer.copy_to(host, stream=stream)
    stream.sync()
    return ctypes.string_at(int(host.handle), buffer.size)


def consume(path):
    """The importer: fills a part of the memory of the program in Java."""
    from cuda.core import Buffer, DeviceMemoryResource
    from cuda.core._memory._ipc import IPCBufferDescriptor

    device, stream, device_uuid = start()
    channel = connected(path)
    _, (descriptor, _) = receive(channel, POOL)
    resource = DeviceMemoryResource.from_allocation_handle(device, descriptor)
    os.close(descriptor)  # the resource has its own
    _, _, offset, size, _, _, handle = opened(receive(channel, BUFFER), BUFFER_FIELDS, BUFFER_MAGIC)
    assert offset == 0, "a slice, which cuda.core does not import"
    filled = received_event(channel)
    buffer = Buffer.from_ipc_descriptor(resource, IPCBufferDescriptor._init(handle, size), stream=stream)
    stream.wait(filled)
    assert set(values(buffer, stream)) == {7}
    Buffer.from_handle(int(buffer.handle), PART, owner=buffer).fill(8, stream=stream)
    buffer.close(stream)  # given back in order of the stream
    done = recorded(stream)  # behind that
    sent_event(channel, done, device_uuid)
    receive(channel, MESSAGE)  # the producer is past our event
    print("consumed")


def produce(path):
    """The exporter: its memory is filled in part by the program in Java."""
    from cuda.core import DeviceMemoryResource, DeviceMemoryResourceOptions

    device, stream, device_uuid = start()
    resource = DeviceMemoryResource(device, options=DeviceMemoryResourceOptions(ipc_enabled=True))
    buffer = resource.allocate(BYTES, stream=stream)
    buffer.fill(7, stream=stream)
    filled = recorded(stream)  # the consumer may touch the memory behind this
    channel = listening(path)
    pool = resource.allocation_handle
    send(channel, POOL, handle=(int(pool), pool.uuid))
    handle, size = buffer.ipc_descriptor.__reduce__()[1]
    send(channel, BUFFER, buffer_descriptor(handle, size, device_uuid))
    sent_event(channel, filled, device_uuid)
    done = received_event(channel)
    stream.wait(done)  # now the buffer is ours alone
    stream.sync()
    send(channel, MESSAGE)  # the consumer may end its event and itself
    found = values(buffer, stream)
    assert set(found[:PART]) == {8} and set(found[PART:]) == {7}, found[:PART + 1]
    buffer.close(stream)
    stream.sync()
    print("produced")


if __name__ == "__main__":
    programs = {"produce": produce, "consume": consume, "echo": echo}
    if len(sys.argv) != 3 or sys.argv[1] not in programs:
        print("usage: sharing.py produce|consume|echo SOCKET", file=sys.stderr)
        sys.exit(2)
    programs[sys.argv[1]](sys.argv[2])
