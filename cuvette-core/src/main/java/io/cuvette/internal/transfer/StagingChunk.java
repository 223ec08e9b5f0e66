package io.cuvette.internal.transfer;

import io.cuvette.EventOptions;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.TransferCalls;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.hostcopy.HostParts;
import io.cuvette.internal.order.OpenEvent;
import io.cuvette.internal.order.OpenStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Memory that a part of a transfer stands in between the host and a device: page-locked, or, if
 * there is none, memory that the driver stages once more. The thread that transfers uses it with
 * the driver; others copy pieces of it.
 */
final class StagingChunk implements AutoCloseable {
  /** The driver copies so much at once. */
  private static final long UNLOCKED_BYTES = HostParts.PIECE_BYTES;

  private final Memory device;
  private final OpenStream stream;
  private final @Nullable Memory pinned;
  private final MemorySegment memory;
  private final Runnable atEnd;

  /** Where the stream is past the last copy; made when it is first wanted. */
  private @Nullable OpenEvent sent;

  private StagingChunk(
      Memory device,
      OpenStream stream,
      @Nullable Memory pinned,
      MemorySegment memory,
      Runnable atEnd) {
    this.device = device;
    this.stream = stream;
    this.pinned = pinned;
    this.memory = memory;
    this.atEnd = atEnd;
  }

  /** A chunk of page-locked memory, which is closed with it. */
  static StagingChunk pinned(Memory device, OpenStream stream, Memory pinned, Runnable atEnd) {
    try {
      MemorySegment memory = Objects.requireNonNull(pinned.hostMemory());
      return new StagingChunk(device, stream, pinned, memory, atEnd);
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, pinned::close);
      throw e;
    }
  }

  /** A chunk of other memory, of at most so many bytes. */
  static StagingChunk unlocked(Memory device, OpenStream stream, long bytes) {
    MemorySegment memory = Arena.ofAuto().allocate(Math.min(bytes, UNLOCKED_BYTES));
    return new StagingChunk(device, stream, null, memory, () -> {});
  }

  long byteSize() {
    return memory.byteSize();
  }

  boolean isPinned() {
    return pinned != null;
  }

  /** Says that the host is about to copy bytes between the chunk and a part of the host's. */
  void report(MemorySegment part, long bytes, boolean in) {
    if (pinned != null) {
      BlockReports.hostCopy(pinned, part, bytes, in);
    }
  }

  /** Copies a piece between the host and the chunk, on any thread. */
  void copy(HostParts host, int piece, long offset, boolean in) {
    if (pinned == null) {
      host.copy(piece, memory, offset, in);
      return;
    }
    pinned.hold();
    try {
      host.copy(piece, memory, offset, in);
    } finally {
      pinned.unhold();
    }
  }

  /** Queues the copy of bytes of it, which are packed, to rows of the device's memory. */
  void send(long from, BoxCopy.Side to, long bytes, long rows, long layers) {
    if (rows == 1) { // of one layer: rows that are alone in theirs are merged
      long target = device.address() + to.address();
      queue(
          pinned == null
              ? calls -> calls.memcpyHtoDAsync(on(), target, memory.asSlice(from, bytes), handle())
              : calls -> calls.memcpyAsync(on(), target, address(from), bytes, handle()));
    } else {
      queue(new BoxCopy(inDevice(to), packed(from, bytes, rows), bytes, rows, layers));
    }
  }

  /** Queues the copy of rows of the device's memory to bytes of it, which become packed. */
  void fetch(long to, BoxCopy.Side from, long bytes, long rows, long layers) {
    if (rows == 1) { // of one layer: rows that are alone in theirs are merged
      long source = device.address() + from.address();
      queue(
          pinned == null
              ? calls -> calls.memcpyDtoHAsync(on(), memory.asSlice(to, bytes), source, handle())
              : calls -> calls.memcpyAsync(on(), address(to), source, bytes, handle()));
    } else {
      queue(new BoxCopy(packed(to, bytes, rows), inDevice(from), bytes, rows, layers));
    }
  }

  private void queue(BoxCopy copy) {
    queue(calls -> RowCopies.queue(calls, on(), copy, handle()));
  }

  private void queue(Consumer<TransferCalls> work) {
    if (pinned == null) {
      Transfers.queue(stream, device, driver -> work.accept(driver.transfers()));
    } else {
      Transfers.queue(stream, device, pinned.block(), driver -> work.accept(driver.transfers()));
    }
  }

  private int on() {
    return stream.on().id();
  }

  private long handle() {
    return stream.state.handle;
  }

  private BoxCopy.Side inDevice(BoxCopy.Side side) {
    return new BoxCopy.Side(device.address() + side.address(), side.pitch(), side.rows());
  }

  private BoxCopy.Side packed(long at, long bytes, long rows) {
    return new BoxCopy.Side(address(at), bytes, rows);
  }

  /** Where a byte of page-locked memory is. */
  private long address(long at) {
    return Objects.requireNonNull(pinned).address() + at;
  }

  /** Marks where the stream is past the copy that was just queued. */
  void mark() {
    OpenEvent event = sent;
    if (event == null) {
      event = OpenEvent.create(stream.on(), EventOptions.ORDER_ONLY);
      sent = event;
    }
    event.record(stream);
  }

  /** Whether the stream is past the mark. */
  boolean isPast() {
    return Objects.requireNonNull(sent).isDone();
  }

  /** Waits until the stream is past the mark. */
  void awaitPast() {
    Objects.requireNonNull(sent).synchronize();
  }

  @Override
  public void close() {
    Failures failures = new Failures();
    if (sent != null) {
      failures.run(sent::close);
    }
    if (pinned != null) {
      failures.run(pinned::close);
    }
    atEnd.run();
    failures.throwFirst();
  }
}
