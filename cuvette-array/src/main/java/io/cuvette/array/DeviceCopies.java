package io.cuvette.array;

import io.cuvette.Buffer;
import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;

/** Copies and fills elements in memory of devices, in stream order. Stateless. */
final class DeviceCopies {
  /** How many copies of contiguous runs are queued rather than going through the host. */
  private static final long MOST_RUNS = 64;

  private DeviceCopies() {}

  /** Copies all elements; shapes are equal, and the memories are apart. */
  static void copy(CudaArray target, CudaArray source, CudaStream stream) {
    CommonLoop loop = CommonLoop.of(target.layout(), source.layout());
    if (loop.isEmpty()) {
      return;
    }
    if (target.type() == source.type() && loop.isContiguousInside() && loop.runs() <= MOST_RUNS) {
      int bytes = target.type().bytes();
      loop.run((to, from, count, _, _) ->
          target
              .buffer()
              .slice(to * bytes, count * bytes)
              .copyFrom(source.buffer().slice(from * bytes, count * bytes), stream));
    } else if (target.device().equals(source.device())) {
      Launches.copy(target, source, stream);
    } else {
      throughHost(target, source, stream);
    }
  }

  /** Copies the memory to the host, the elements there, and back. Waits. */
  private static void throughHost(CudaArray target, CudaArray source, CudaStream stream) {
    Buffer from = source.bytes();
    Buffer to = target.bytes();
    try (PinnedBuffer in = target.device().cuda().allocatePinned(from.byteSize());
        PinnedBuffer out = target.device().cuda().allocatePinned(to.byteSize())) {
      in.copyFrom(from, stream);
      if (!target.layout().isDense()) {
        out.copyFrom(to, stream); // what lies between the elements
      }
      stream.synchronize();
      HostCopies.copy(place(target, out), place(source, in));
      to.copyFrom(out, stream);
    }
  }

  /** The elements of an array in a copy of its bytes. */
  private static HostCopies.Place place(CudaArray of, PinnedBuffer image) {
    Layout layout = of.layout();
    return new HostCopies.Place(
        image.segment(),
        of.type(),
        Layout.view(layout.sizes(), layout.steps(), layout.offset() - layout.lowest()));
  }

  /** Gives all elements one value. */
  static void fill(CudaArray target, Scalar value, CudaStream stream) {
    target.checkOpen();
    target.checkWritable();
    if (target.size() == 0) {
      return;
    }
    if (target.layout().isDense()) {
      fill(target.bytes(), value, stream);
      return;
    }
    Launches.fill(target, value, stream);
  }

  private static void fill(Buffer target, Scalar value, CudaStream stream) {
    int first = (int) value.low();
    switch (value.type().bytes()) {
      case 1 -> target.fill((byte) first, stream);
      case 2 -> target.fillShorts((short) first, stream);
      case 4 -> target.fillInts(first, stream);
      default -> {
        if (isOneInt(value)) {
          target.fillInts(first, stream);
        } else {
          repeat(target, value, stream);
        }
      }
    }
  }

  private static boolean isOneInt(Scalar value) {
    boolean isOneLong = value.type().bytes() == 8 || value.low() == value.high();
    return isOneLong && (int) value.low() == (int) (value.low() >>> Integer.SIZE);
  }

  /** Writes the first element in parts of 4 bytes, and copies what is there until it is all. */
  private static void repeat(Buffer target, Scalar value, CudaStream stream) {
    int[] parts = {
      (int) value.low(), (int) (value.low() >>> 32), (int) value.high(), (int) (value.high() >>> 32)
    };
    long done = value.type().bytes();
    for (int i = 0; i < done / Integer.BYTES; i++) {
      target.slice((long) i * Integer.BYTES, Integer.BYTES).fillInts(parts[i], stream);
    }
    while (done < target.byteSize()) {
      long more = Math.min(done, target.byteSize() - done);
      target.slice(done, more).copyFrom(target.slice(0, more), stream);
      done += more;
    }
  }
}
