package io.cuvette.internal.box;

import io.cuvette.CopyBox;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaDriver;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.hostcopy.PartialCopy;
import io.cuvette.internal.lifetime.HostViews;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.UsedMemory;
import io.cuvette.internal.transfer.HostTransfers;
import io.cuvette.internal.transfer.PackedRows;
import io.cuvette.internal.transfer.RowCopies;
import io.cuvette.internal.transfer.Staging;
import io.cuvette.internal.transfer.Transfers;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.ArrayList;
import java.util.List;

/** Copies of rows that lie apart: checks first, then one call of the driver. Stateless. */
public final class BoxTransfers {
  private BoxTransfers() {}

  /** Copies between buffers and waits. */
  public static void copy(Memory target, Memory source, CopyBox box, OpenStream stream) {
    Transfers.checkCanWait(stream, "copyFrom");
    copyAsync(target, source, box, stream);
    if (box.byteSize() > 0) {
      stream.awaitWork();
    }
  }

  /** Copies between buffers in order of a stream. */
  public static void copyAsync(Memory target, Memory source, CopyBox box, OpenStream stream) {
    target.checkOpen();
    source.checkOpen();
    target.checkWritable();
    checkInside("target", target, target.byteSize(), box.target(), box);
    checkInside("source", source, source.byteSize(), box.source(), box);
    Transfers.checkStream(target, source, stream);
    if (box.byteSize() == 0) {
      return;
    }
    BoxCopy copy = between(target.address(), source.address(), box);
    checkApart(copy);
    if (copy.allRows() == 1) {
      copyRow(target, source, copy, 0, stream);
    } else if (Transfers.isDirect(target, source, stream)) {
      try {
        Transfers.queue(stream, source, target.block(), driver -> queue(driver, stream, copy));
      } finally {
        Reference.reachabilityFence(target.face());
      }
    } else {
      copyRows(target, source, copy, stream);
    }
  }

  private static BoxCopy between(long target, long source, CopyBox box) {
    return new BoxCopy(
            side(target, box.target()),
            side(source, box.source()),
            box.width(),
            box.height(),
            box.depth())
        .merged();
  }

  private static BoxCopy.Side side(long address, CopyBox.Side side) {
    return new BoxCopy.Side(address + side.offset(), side.pitch(), side.rows());
  }

  private static void queue(CudaDriver driver, OpenStream stream, BoxCopy copy) {
    RowCopies.queue(driver.transfers(), stream.on().id(), copy, stream.state.handle);
  }

  private static void copyRow(
      Memory target, Memory source, BoxCopy copy, long row, OpenStream stream) {
    long to = copy.target().addressOf(row, copy.height()) - target.address();
    long from = copy.source().addressOf(row, copy.height()) - source.address();
    Transfers.copyAsync(target.part(to, copy.width()), source.part(from, copy.width()), stream);
  }

  /** Where one call cannot do it: between devices. */
  private static void copyRows(Memory target, Memory source, BoxCopy copy, OpenStream stream) {
    for (long row = 0; row < copy.allRows(); row++) {
      try {
        copyRow(target, source, copy, row, stream);
      } catch (RuntimeException | Error e) {
        throw PartialCopy.explained(e, RowCopies.queued(row, copy));
      }
    }
  }

  /** Copies from the host and waits. */
  public static void copyIn(
      Memory target, MemorySegment source, CopyBox box, OpenStream stream, Staging staging) {
    Transfers.checkCanWait(stream, "copyFrom");
    boolean isQueued = host("source", target, source, box, stream, staging, true, canWait(stream));
    if (isQueued) {
      stream.awaitWork();
    }
  }

  /** Copies to the host and waits. */
  public static void copyOut(
      Memory source, MemorySegment target, CopyBox box, OpenStream stream, Staging staging) {
    Transfers.checkCanWait(stream, "copyTo");
    boolean isQueued = host("target", source, target, box, stream, staging, false, canWait(stream));
    if (isQueued) {
      stream.awaitWork();
    }
  }

  /** Copies from native memory in order of a stream; waits if that is not page-locked. */
  public static void copyInAsync(
      Memory target, MemorySegment source, CopyBox box, OpenStream stream, Staging staging) {
    HostTransfers.checkNative("source", source);
    boolean _ = host("source", target, source, box, stream, staging, true, true);
  }

  /** Copies to native memory in order of a stream, likewise. */
  public static void copyOutAsync(
      Memory source, MemorySegment target, CopyBox box, OpenStream stream, Staging staging) {
    HostTransfers.checkNative("target", target);
    boolean _ = host("target", source, target, box, stream, staging, false, true);
  }

  /**
   * Whether this thread may wait for the stream until the work is done. Inside a callback a wait
   * can end before that: rows go through staging there, so that no device is left with memory of
   * the user.
   */
  private static boolean canWait(OpenStream stream) {
    return !stream.on().session().isInsideCallback();
  }

  /**
   * Whether it is queued, and not done.
   *
   * @param mayQueue whether the driver may be given memory that is page-locked
   */
  private static boolean host(
      String name,
      Memory buffer,
      MemorySegment host,
      CopyBox box,
      OpenStream stream,
      Staging staging,
      boolean in,
      boolean mayQueue) {
    buffer.checkOpen();
    if (in) {
      buffer.checkWritable();
    }
    CopyBox.Side hostSide = in ? box.source() : box.target();
    CopyBox.Side side = in ? box.target() : box.source();
    checkInside(in ? "target" : "source", buffer, buffer.byteSize(), side, box);
    checkInside(name, host, host.byteSize(), hostSide, box);
    HostParts _ = HostParts.of(name, host, !in); // checks that this thread may use it
    Transfers.checkStream(buffer, buffer, stream);
    if (box.byteSize() == 0) {
      return false;
    }
    if (host.isNative()) {
      checkApart(copyOf(buffer.address(), host.address(), box, in));
      checkApart(copyOf(buffer.hostAddress(), host.address(), box, in));
    }
    HostViews<UsedMemory> views = stream.state.streams.views();
    UsedMemory viewed = host.isNative() ? views.find(host) : null;
    if (viewed != null && mayQueue) {
      BoxCopy copy = copyOf(buffer.address(), views.addressOf(host), box, in);
      Transfers.queue(stream, buffer, viewed, driver -> queue(driver, stream, copy));
      return true;
    }
    Transfers.checkCanWait(stream, in ? "copyFrom" : "copyTo");
    staged(name, buffer, host, copyOf(buffer.address(), 0, box, in), stream, staging, in);
    return false;
  }

  private static BoxCopy copyOf(long buffer, long host, CopyBox box, boolean in) {
    return in ? between(buffer, host, box) : between(host, buffer, box);
  }

  private static void staged(
      String name,
      Memory buffer,
      MemorySegment host,
      BoxCopy copy,
      OpenStream stream,
      Staging staging,
      boolean in) {
    BoxCopy.Side hostSide = in ? copy.source() : copy.target();
    BoxCopy.Side side = in ? copy.target() : copy.source();
    List<MemorySegment> rows = new ArrayList<>();
    for (long row = 0; row < copy.allRows(); row++) {
      rows.add(host.asSlice(hostSide.addressOf(row, copy.height()), copy.width()));
    }
    PackedRows packed =
        new PackedRows(
            new BoxCopy.Side(side.address() - buffer.address(), side.pitch(), side.rows()),
            copy.width(),
            copy.height(),
            copy.depth());
    HostTransfers.copyRows(buffer, packed, name, rows, stream, staging, in);
  }

  private static void checkInside(
      String name, Object where, long bytes, CopyBox.Side side, CopyBox box) {
    BoxCopy.Side at = side(0, side);
    long end = box.byteSize() == 0 ? side.offset() : end(at, box);
    if (end > bytes) {
      throw new IndexOutOfBoundsException(
          "%s: %s of %s ends at byte %d of %s (expected: <= %d)"
              .formatted(name, side, box, end, where, bytes));
    }
  }

  private static long end(BoxCopy.Side side, CopyBox box) {
    return side.addressOf(box.height() * box.depth() - 1, box.height()) + box.width();
  }

  private static void checkApart(BoxCopy copy) {
    long shared = copy.commonBytes();
    if (shared > 0) {
      throw new IllegalArgumentException(
          "%s: %d bytes are in a row of the source and in one of the target (expected: none)"
              .formatted(copy, shared));
    }
  }
}
