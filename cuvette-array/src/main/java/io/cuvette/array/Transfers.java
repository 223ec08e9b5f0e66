package io.cuvette.array;

import io.cuvette.CudaStream;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** Copies arrays to the host in the way of CuPy's asnumpy. Stateless. */
final class Transfers {
  private Transfers() {}

  static HostArray toHost(
      CudaArray a, CudaStream stream, Order order, @Nullable HostArray out, boolean blocking) {
    a.checkOpen();
    Order chosen = order(order, a);
    if (stream.device() != a.device()) {
      throw new IllegalArgumentException(
          "%s is of another device than %s (expected: a stream of its device)"
              .formatted(stream, a));
    }
    if (out != null) {
      chosen = checkOut(a, out, blocking);
    }
    HostArray target =
        out == null
            ? HostArrays.of(a.device().cuda()).allocate(a.type(), a.layout().like(chosen))
            : out;
    try (Scope _ = stream.use()) {
      queue(a, chosen, target, stream);
      if (blocking) {
        stream.synchronize();
      }
      return target;
    } catch (RuntimeException | Error e) {
      if (out == null) {
        target.close();
      }
      throw e;
    }
  }

  private static Order order(Order order, NdArray a) {
    return switch (Objects.requireNonNull(order, "order")) {
      case C, F -> order;
      case A -> a.isContiguous(Order.F) && !a.isContiguous(Order.C) ? Order.F : Order.C;
      case K -> throw new IllegalArgumentException("order: K (expected: C, F or A)");
    };
  }

  /** The order in which the result lies. */
  private static Order checkOut(NdArray a, HostArray out, boolean blocking) {
    out.checkOpen();
    if (out.type() != a.type()) {
      throw new IllegalArgumentException(
          "out: elements of %s (expected: %s)".formatted(out.type(), a.type()));
    }
    if (!out.layout().hasShapeOf(a.layout())) {
      throw new IllegalArgumentException(
          "out: shape %s (expected: %s)"
              .formatted(Arrays.toString(out.shape()), Arrays.toString(a.shape())));
    }
    if (!out.isContiguous(Order.C) && !out.isContiguous(Order.F)) {
      throw new IllegalArgumentException(
          "out: %s (expected: contiguous in order C or F)".formatted(out.layout()));
    }
    if (!blocking && out.pinned() == null) {
      throw new IllegalArgumentException(
          "out: %s (expected: page-locked memory, if the copy is not waited for)".formatted(out));
    }
    out.checkWritable();
    if (a.isContiguous(Order.F) && out.isContiguous(Order.F)) {
      return Order.F;
    }
    return out.isContiguous(Order.C) ? Order.C : Order.F;
  }

  private static void queue(CudaArray a, Order order, HostArray target, CudaStream stream) {
    if (a.size() == 0) {
      return;
    }
    if (!a.isContiguous(order)) {
      try (CudaArray ordered = a.on(stream).copy(a, a.type(), order)) {
        queue(ordered, order, target, stream);
      }
      return;
    }
    PinnedBuffer pinned = target.pinned();
    if (pinned == null) {
      a.bytes().copyTo(target.bytes());
    } else {
      a.bytes().copyTo(pinned.slice(target.lowestByte(), a.byteSize()), stream);
    }
  }

  /** The same for an array that is on the host: nothing is queued. */
  static HostArray toHost(HostArray a, Order order, @Nullable HostArray out) {
    a.checkOpen();
    Order chosen = order(order, a);
    if (out != null) {
      Order _ = checkOut(a, out, true);
      out.copyFrom(a);
      return out;
    }
    return a.module().contiguous(a, chosen);
  }
}
