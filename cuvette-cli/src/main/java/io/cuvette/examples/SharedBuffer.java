package io.cuvette.examples;

import io.cuvette.AllocationHandle;
import io.cuvette.BufferDescriptor;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.EventOptions;
import io.cuvette.IpcChannel;
import java.lang.foreign.MemorySegment;
import java.time.Duration;

/**
 * A pool, a buffer of it and an event, which two processes share: one of them made them and the
 * other imported them. Not thread-safe.
 */
record SharedBuffer(
    CudaStream stream, DeviceMemoryResource resource, DeviceBuffer buffer, CudaEvent event)
    implements AutoCloseable {

  static final int BYTES = 1 << 20;
  static final Duration PATIENCE = Duration.ofSeconds(60);

  /**
   * Makes a pool that can be shared, and a buffer whose bytes are there when the event happened.
   */
  static SharedBuffer make(CudaDevice device, byte value) {
    CudaStream stream = device.createStream();
    DeviceMemoryResource resource =
        new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
    DeviceBuffer buffer = resource.allocate(BYTES, stream);
    buffer.fill(value, stream);
    CudaEvent event = device.createEvent(EventOptions.ORDER_ONLY.withInterprocess(true));
    event.record(stream);
    return new SharedBuffer(stream, resource, buffer, event);
  }

  /** Sends all three; what is sent stays this process's to close. */
  void send(IpcChannel channel) {
    channel.send(resource.allocationHandle());
    channel.send(buffer.descriptor());
    channel.send(event.descriptor());
  }

  /** Imports all three; nothing is copied. The stream waits for the other process's event. */
  static SharedBuffer receive(CudaDevice device, IpcChannel channel) {
    CudaStream stream = device.createStream();
    DeviceMemoryResource resource;
    try (AllocationHandle handle = channel.receiveAllocationHandle(PATIENCE)) {
      resource = DeviceMemoryResource.fromAllocationHandle(device, handle);
    }
    BufferDescriptor descriptor = channel.receiveBufferDescriptor(PATIENCE);
    CudaEvent event = device.importEvent(channel.receiveEventDescriptor(PATIENCE));
    stream.waitFor(event);
    return new SharedBuffer(stream, resource, resource.importBuffer(descriptor, stream), event);
  }

  /** Waits for the stream, and gives the value that all bytes of a part have. */
  byte valueOf(long offset, long bytes) {
    stream.synchronize();
    byte[] copy = new byte[(int) bytes];
    buffer.slice(offset, bytes).copyTo(MemorySegment.ofArray(copy));
    for (byte each : copy) {
      if (each != copy[0]) {
        throw new WrongResultException("bytes %d and %d in one part".formatted(copy[0], each));
      }
    }
    return copy[0];
  }

  /** Writes a part, and waits until it is written. */
  void write(long offset, long bytes, byte value) {
    buffer.slice(offset, bytes).fill(value, stream);
    stream.synchronize();
  }

  /** Gives the memory back, and returns when that is done: the importer does so first. */
  @Override
  public void close() {
    try (stream;
        resource;
        event) {
      buffer.close();
      stream.synchronize();
    }
  }
}
