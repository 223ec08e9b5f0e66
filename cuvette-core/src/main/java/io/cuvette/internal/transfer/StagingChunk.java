package io.cuvette.internal.transfer;

import io.cuvette.EventOptions;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.ChunkSource;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.order.OpenEvent;
import io.cuvette.internal.order.OpenStream;
import java.lang.foreign.MemorySegment;
import java.util.Objects;

/**
 * A page-locked chunk between a heap segment and a device buffer. Confined to the copying thread.
 */
public final class StagingChunk implements AutoCloseable {
  private final Memory device;
  private final MemorySegment heap;
  private final OpenStream stream;
  private final Memory pinned;
  private final MemorySegment memory;
  private final OpenEvent sent;

  /** Where the bytes that are on their way out belong; none if negative. */
  private long arriving = -1;

  public StagingChunk(
      Memory device, MemorySegment heap, OpenStream stream, ChunkSource pinned, long bytes) {
    this.device = device;
    this.heap = heap;
    this.stream = stream;
    this.pinned = Objects.requireNonNull(pinned.allocate(bytes, stream));
    this.memory = Objects.requireNonNull(this.pinned.hostMemory());
    try {
      this.sent = OpenEvent.create(stream.on(), EventOptions.ORDER_ONLY);
    } catch (RuntimeException | Error e) {
      Failures.closeAfter(e, this.pinned::close);
      throw e;
    }
  }

  public void sendIn(long offset) {
    sent.synchronize();
    long bytes = bytesAt(offset);
    BlockReports.hostCopy(pinned, heap, bytes, true);
    copy(heap, offset, memory, 0, bytes);
    transfer(device.address() + offset, pinned.address(), bytes);
  }

  public void sendOut(long offset) {
    finish();
    transfer(pinned.address(), device.address() + offset, bytesAt(offset));
    arriving = offset;
  }

  /** Waits for what was sent, and brings to the heap what has arrived. */
  public void finish() {
    sent.synchronize();
    if (arriving >= 0) {
      BlockReports.hostCopy(pinned, heap, bytesAt(arriving), false);
      copy(memory, 0, heap, arriving, bytesAt(arriving));
      arriving = -1;
    }
  }

  private void copy(
      MemorySegment from, long fromOffset, MemorySegment to, long offset, long bytes) {
    pinned.hold();
    try {
      MemorySegment.copy(from, fromOffset, to, offset, bytes);
    } finally {
      pinned.unhold();
    }
  }

  @Override
  public void close() {
    try (sent) {
      pinned.close();
    }
  }

  private long bytesAt(long offset) {
    return Math.min(pinned.byteSize(), heap.byteSize() - offset);
  }

  private void transfer(long target, long source, long bytes) {
    int on = stream.on().id();
    Transfers.queue(
        stream,
        device,
        pinned.block(),
        driver -> driver.transfers().memcpyAsync(on, target, source, bytes, stream.state.handle));
    sent.record(stream);
  }
}
