package io.cuvette.testkit.guide;

import io.cuvette.AllocationHandle;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.EventOptions;
import io.cuvette.IpcChannel;
import java.nio.file.Path;
import java.time.Duration;

/** The second program of docs/guide/sharing.md: it uses the memory. */
final class SharingConsumer {
  static final Duration PATIENCE = Duration.ofSeconds(30);

  private SharingConsumer() {}

  public static void main(String[] arguments) {
    try (Cuda cuda = Cuda.open()) {
      consume(cuda, Path.of(arguments[0]));
    }
  }

  static void consume(Cuda cuda, Path socket) {
    CudaDevice device = cuda.currentDevice();
    try (IpcChannel channel = IpcChannel.connect(socket, PATIENCE); // waits for the listener
        CudaStream stream = device.createStream();
        DeviceMemoryResource resource = receivePool(device, channel);
        CudaEvent done = device.createEvent(EventOptions.ORDER_ONLY.withInterprocess(true))) {
      BufferDescriptor descriptor = channel.receiveBufferDescriptor(PATIENCE);
      try (CudaEvent filled = device.importEvent(channel.receiveEventDescriptor(PATIENCE));
          DeviceBuffer buffer = resource.importBuffer(descriptor, stream)) {
        stream.waitFor(filled);
        buffer.slice(0, 1000).fill((byte) 8, stream); // the producer's memory, not a copy
      } // given back in order of the stream
      done.record(stream); // behind that
      channel.send(done.descriptor());
      channel.receiveMessage(PATIENCE).close(); // the producer is past our event
    }
  }

  private static DeviceMemoryResource receivePool(CudaDevice device, IpcChannel channel) {
    try (AllocationHandle handle = channel.receiveAllocationHandle(PATIENCE)) {
      return DeviceMemoryResource.fromAllocationHandle(device, handle);
    }
  }
}
