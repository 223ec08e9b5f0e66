package io.cuvette.internal.box;

import io.cuvette.internal.base.Checks;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.hostcopy.ArrayRows;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.hostcopy.PartialCopy;
import io.cuvette.internal.lifetime.HostViews;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.stream.UsedMemory;
import io.cuvette.internal.transfer.HostTransfers;
import io.cuvette.internal.transfer.Staging;
import io.cuvette.internal.transfer.Transfers;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Copies between the start of a buffer and rows of the host, which are segments in many places.
 * Stateless.
 */
public final class HostRowTransfers {
  /**
   * A row that is page-locked.
   *
   * @param of the memory that it is a part of
   * @param offset where it is in the buffer
   */
  private record Row(MemorySegment segment, UsedMemory of, long offset) {}

  private HostRowTransfers() {}

  /** Copies segments one after the other to the start of a buffer and waits. */
  public static void gather(
      Memory target, List<MemorySegment> sources, OpenStream stream, Staging staging) {
    copyAndWait("sources", target, frozen("sources", sources), stream, staging, true);
  }

  /** Copies the start of a buffer to segments one after the other and waits. */
  public static void scatter(
      Memory source, List<MemorySegment> targets, OpenStream stream, Staging staging) {
    copyAndWait("targets", source, frozen("targets", targets), stream, staging, false);
  }

  /** Copies native segments to the start of a buffer in order of a stream. */
  public static void gatherAsync(
      Memory target, List<MemorySegment> sources, OpenStream stream, Staging staging) {
    copyAsync("sources", target, frozen("sources", sources), stream, staging, true);
  }

  /** Copies the start of a buffer to native segments in order of a stream. */
  public static void scatterAsync(
      Memory source, List<MemorySegment> targets, OpenStream stream, Staging staging) {
    copyAsync("targets", source, frozen("targets", targets), stream, staging, false);
  }

  /** A list that nobody changes any more. */
  private static List<MemorySegment> frozen(String name, List<MemorySegment> rows) {
    return rows instanceof ArrayRows ? rows : Checks.noNulls(name, rows);
  }

  private static void copyAndWait(
      String name,
      Memory buffer,
      List<MemorySegment> rows,
      OpenStream stream,
      Staging staging,
      boolean in) {
    Transfers.checkCanWait(stream, in ? "gatherFrom" : "scatterTo");
    copyAndWait(buffer, checked(name, buffer, rows, in), stream, staging, in);
  }

  private static void copyAndWait(
      Memory buffer, HostParts host, OpenStream stream, Staging staging, boolean in) {
    if (in && hasViews(host, stream)) {
      stream.awaitTurn(); // which may be on its way to what is read
    }
    HostTransfers.copy(buffer, host, stream, staging, in);
  }

  /** What is page-locked the device copies; if something is not, all goes through chunks. */
  private static void copyAsync(
      String name,
      Memory buffer,
      List<MemorySegment> rows,
      OpenStream stream,
      Staging staging,
      boolean in) {
    buffer.checkOpen();
    for (int i = 0; i < rows.size(); i++) {
      if (!rows.get(i).isNative()) {
        HostTransfers.checkNative("%s[%d]".formatted(name, i), rows.get(i));
      }
    }
    HostParts host = checked(name, buffer, rows, in);
    Transfers.checkStream(buffer, buffer, stream);
    List<Row> locked = pageLocked(rows, stream);
    if (locked == null) {
      Transfers.checkCanWait(stream, in ? "gatherFrom" : "scatterTo");
      copyAndWait(buffer, host, stream, staging, in);
    } else {
      queue(buffer, locked, stream, in);
    }
  }

  private static HostParts checked(
      String name, Memory buffer, List<MemorySegment> rows, boolean in) {
    HostParts host = HostParts.of(name, rows, !in);
    if (in) {
      Transfers.checkFits(buffer, host.byteSize());
      buffer.checkWritable();
    } else {
      HostTransfers.checkHolds(buffer, host.byteSize());
    }
    host.forEachNative(row -> HostTransfers.checkApart(buffer, host.byteSize(), row));
    return host;
  }

  private static boolean hasViews(HostParts host, OpenStream stream) {
    HostViews<UsedMemory> views = stream.state.streams.views();
    boolean[] found = {false};
    host.forEachNative(row -> found[0] |= views.find(row) != null);
    return found[0];
  }

  /** The rows that have bytes; null if one is not page-locked memory that this library knows. */
  private static @Nullable List<Row> pageLocked(List<MemorySegment> rows, OpenStream stream) {
    HostViews<UsedMemory> views = stream.state.streams.views();
    List<Row> found = new ArrayList<>();
    long offset = 0;
    for (MemorySegment row : rows) {
      UsedMemory of = views.find(row);
      if (of == null && row.byteSize() > 0) {
        return null;
      }
      if (of != null && row.byteSize() > 0) {
        found.add(new Row(row, of, offset));
      }
      offset += row.byteSize();
    }
    return found;
  }

  private static void queue(Memory buffer, List<Row> rows, OpenStream stream, boolean in) {
    HostViews<UsedMemory> views = stream.state.streams.views();
    int on = stream.on().id();
    for (Row row : rows) {
      long device = buffer.address() + row.offset;
      long bytes = row.segment.byteSize();
      try {
        Transfers.queue(
            stream,
            buffer,
            row.of,
            driver -> {
              long host = views.addressOf(row.segment);
              driver
                  .transfers()
                  .memcpyAsync(
                      on, in ? device : host, in ? host : device, bytes, stream.state.handle);
            });
      } catch (RuntimeException | Error e) {
        throw PartialCopy.explained(
            e,
            "copy of %d rows to the %s: bytes 0 to %d are queued, no other"
                .formatted(rows.size(), in ? "device" : "host", row.offset));
      }
    }
  }
}
