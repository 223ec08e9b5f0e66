package io.cuvette.testkit.guide;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.EventOptions;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;

/** The first program of docs/guide/sharing.md: it makes the memory. */
final class SharingProducer {
  static final Duration PATIENCE = Duration.ofSeconds(30);

  private SharingProducer() {}

  public static void main(String[] arguments) {
    try (Cuda cuda = Cuda.open()) {
      byte[] back = produce(cuda, Path.of(arguments[0]));
      System.out.println("the consumer wrote " + back[0]); // 8
    }
  }

  static byte[] produce(Cuda cuda, Path socket) {
    CudaDevice device = cuda.currentDevice();
    var shared = DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);
    try (CudaStream stream = device.createStream();
        DeviceMemoryResource resource = new DeviceMemoryResource(device, shared);
        DeviceBuffer buffer = resource.allocate(1 << 20, stream);
        CudaEvent filled = device.createEvent(EventOptions.ORDER_ONLY.withInterprocess(true));
        IpcListener listener = IpcListener.open(socket); // a file that is this user's alone
        IpcChannel channel = listener.accept(PATIENCE)) {
      buffer.fill((byte) 7, stream);
      filled.record(stream); // the consumer may touch the memory behind this

      channel.send(resource.allocationHandle()); // 1: the pool
      channel.send(buffer.descriptor()); // 2: the buffer
      channel.send(filled.descriptor()); // 3: the event

      try (CudaEvent done = device.importEvent(channel.receiveEventDescriptor(PATIENCE))) {
        stream.waitFor(done); // now the buffer is ours alone, and closing it comes behind
      }
      stream.synchronize();
      channel.send(new byte[0]); // the consumer may end its event and itself
      byte[] back = new byte[1 << 20];
      buffer.copyTo(MemorySegment.ofArray(back));
      return back;
    }
  }
}
