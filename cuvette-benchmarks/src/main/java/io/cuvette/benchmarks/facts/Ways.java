package io.cuvette.benchmarks.facts;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.DriverPoolResource;
import io.cuvette.ManagedBuffer;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Locale;
import java.util.function.LongSupplier;

/**
 * Each way to make a resource, and the stream that all facts use. Not thread-safe.
 *
 * @param cuda the device's runtime
 * @param stream of device 0
 */
record Ways(Cuda cuda, CudaStream stream) {
  static final long MIB = 1 << 20;
  static final int NOT_A_DEVICE = 4096;
  private static final int RANGE_SIZE = 12;
  private static final byte WRITTEN = 0x42;

  Ways(Cuda cuda) {
    this(cuda, cuda.device(0).createStream());
  }

  /** The kinds of resources. */
  enum Kind {
    DEVICE,
    PINNED,
    MANAGED;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** How a resource is made. */
  enum How {
    CURRENT,
    OWN,
    OWN_NUMA0,
    IPC,
    IPC_NUMA0;

    boolean ipc() {
      return this == IPC || this == IPC_NUMA0;
    }

    boolean node0() {
      return this == OWN_NUMA0 || this == IPC_NUMA0;
    }

    /** Whether a kind of resource can be asked for it. */
    boolean fits(Kind kind) {
      return switch (kind) {
        case DEVICE -> !node0();
        case PINNED -> true;
        case MANAGED -> this == CURRENT || this == OWN;
      };
    }

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
  }

  CudaDevice device() {
    return cuda.device(0);
  }

  DriverPoolResource make(Kind kind, How how) {
    return switch (kind) {
      case DEVICE -> device(how);
      case PINNED -> pinned(how);
      case MANAGED ->
          how == How.CURRENT
              ? new ManagedMemoryResource(cuda)
              : new ManagedMemoryResource(cuda, ManagedMemoryResourceOptions.DEFAULTS);
    };
  }

  DeviceMemoryResource device(How how) {
    return how == How.CURRENT
        ? new DeviceMemoryResource(device())
        : new DeviceMemoryResource(
            device(), DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(how.ipc()));
  }

  PinnedMemoryResource pinned(How how) {
    if (how == How.CURRENT) {
      return new PinnedMemoryResource(cuda);
    }
    PinnedMemoryResourceOptions options =
        PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(how.ipc());
    return new PinnedMemoryResource(cuda, how.node0() ? options.withNumaId(0) : options);
  }

  /** Waits, then reads a number. */
  long settled(LongSupplier number) {
    stream.synchronize();
    return number.getAsLong();
  }

  /** What the driver says of the size of the allocation. */
  long rangeSize(Buffer buffer) {
    return cuda.driver().memory().pointerGetAttribute(0, RANGE_SIZE, buffer.address());
  }

  /** What the host reads after the device wrote 0x42. */
  int filled(Buffer buffer) {
    buffer.fill(WRITTEN, stream);
    return firstByte(buffer);
  }

  int firstByte(Buffer buffer) {
    stream.synchronize();
    MemorySegment memory =
        switch (buffer) {
          case PinnedBuffer pinned -> pinned.segment();
          case ManagedBuffer managed -> managed.segment();
          case DeviceBuffer device -> {
            MemorySegment copy = MemorySegment.ofArray(new byte[1]);
            device.copyTo(copy);
            yield copy;
          }
        };
    return memory.get(ValueLayout.JAVA_BYTE, 0);
  }
}
