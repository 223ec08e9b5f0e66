package io.cuvette.internal.kernel;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.interop.DriverHandle;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import java.util.List;
import java.util.Objects;

/**
 * Products of matrices in memory of buffers, which are held, and known to be used by the stream, as
 * in a launch. Stateless.
 */
public final class Products {
  private Products() {}

  /** Queues a product in the stream of a handle that is held. */
  public static void queue(
      DriverHandle handle, MatrixProduct product, Memory c, Memory a, Memory b) {
    OpenStream stream = handle.stream();
    check("c", c, product.bytesOfC(), product, stream.on());
    check("a", a, product.bytesOfA(), product, stream.on());
    check("b", b, product.bytesOfB(), product, stream.on());
    checkApart("a", c, product.bytesOfC(), a, product.bytesOfA());
    checkApart("b", c, product.bytesOfC(), b, product.bytesOfB());
    List<Memory> all = List.of(c, a, b);
    int held = 0;
    try {
      for (Memory each : all) {
        each.hold();
        held++;
      }
      queueHeld(handle, product, all);
    } finally {
      while (held > 0) {
        all.get(--held).unhold();
      }
    }
  }

  private static void queueHeld(DriverHandle handle, MatrixProduct product, List<Memory> all) {
    OpenStream stream = handle.stream();
    CudaDriver driver = stream.holdToQueue();
    try {
      Capture before = stream.state.capture();
      all.forEach(each -> each.block().useHeld(stream.state, before));
      driver
          .math()
          .gemm(
              stream.on().id(),
              handle.handle(),
              product,
              all.get(0).address(),
              all.get(1).address(),
              all.get(2).address());
      Capture after = stream.state.capture(); // others may have begun or ended it meanwhile
      if (!Objects.equals(before, after)) {
        all.forEach(each -> each.block().useHeld(stream.state, after));
      }
    } finally {
      stream.unhold();
    }
  }

  private static void check(
      String name, Memory memory, long bytes, MatrixProduct product, Device device) {
    if (memory.on().session() != device.session()) {
      throw new IllegalArgumentException("%s: %s belongs to another Cuda".formatted(name, memory));
    }
    memory.checkOpen();
    if (memory.byteSize() < bytes) {
      throw new IllegalArgumentException(
          "%s: %d bytes (expected: >= %d for %s)"
              .formatted(name, memory.byteSize(), bytes, product));
    }
    if (memory.address() % product.type().alignment() != 0) {
      throw new IllegalArgumentException(
          "%s: 0x%x (expected: a multiple of %d)"
              .formatted(name, memory.address(), product.type().alignment()));
    }
    DeviceAccess.check(memory, device, "the product");
  }

  private static void checkApart(String name, Memory c, long bytesC, Memory other, long bytes) {
    if (c.address() < other.address() + bytes && other.address() < c.address() + bytesC) {
      throw new IllegalArgumentException(
          "c: %s and %s: %s have bytes in common (expected: none)".formatted(c, name, other));
    }
  }
}
