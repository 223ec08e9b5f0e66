package io.cuvette.internal.block;

import io.cuvette.internal.base.BargingLock;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.session.Session;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * The segment through which users see host-accessible memory. It is made when first requested and
 * dies with the buffer, which is what makes use after close an exception instead of a crash.
 * Thread-safe.
 */
public final class HostView {
  /** What the JDK makes a buffer of: as many bytes as the largest array can have on any JVM. */
  private static final int LARGEST_BYTE_BUFFER = Integer.MAX_VALUE - 8;

  private final BargingLock lock = new BargingLock();
  private @Nullable MemorySegment segment;

  /** A segment that is made when first requested, and dies with the buffer. */
  public HostView() {}

  /** Memory of the program, which outlives the buffer. */
  public HostView(MemorySegment ofProgram) {
    segment = ofProgram;
  }

  /** The segment of a buffer, or of a slice of it. */
  public MemorySegment of(Memory part, Memory whole) {
    part.checkOpen();
    if (part.byteSize() == 0) {
      return MemorySegment.NULL;
    }
    return whole(whole).asSlice(part.address() - whole.address(), part.byteSize());
  }

  /** Where a buffer, or a slice of it, is seen; its own address if nobody has seen it yet. */
  public long addressOf(Memory part, Memory whole) {
    lock.lock();
    try {
      return segment == null || part.byteSize() == 0
          ? part.address()
          : segment.address() + part.address() - whole.address();
    } finally {
      lock.unlock();
    }
  }

  private MemorySegment whole(Memory buffer) {
    lock.lock();
    try {
      MemorySegment made = segment;
      if (made == null) {
        made = make(buffer);
        segment = made;
      }
      return made;
    } finally {
      lock.unlock();
    }
  }

  public static ByteBuffer byteBuffer(MemorySegment segment) {
    if (segment.byteSize() > LARGEST_BYTE_BUFFER) {
      throw new IllegalStateException(
          "a ByteBuffer of %d bytes (expected: <= %d; take slices)"
              .formatted(segment.byteSize(), LARGEST_BYTE_BUFFER));
    }
    return segment.asByteBuffer().order(ByteOrder.nativeOrder());
  }

  private static MemorySegment make(Memory buffer) {
    Session session = buffer.on().session();
    Arena arena = Arena.ofShared();
    buffer.hold(); // so that whoever closes it meets the view
    try {
      MemorySegment made =
          session.ask(driver ->
              driver
                  .memory()
                  .hostView(buffer.on().id(), buffer.address(), buffer.byteSize(), arena));
      Block block = buffer.block();
      block.viewedThrough(
          buffer.order().state.streams.views().add(block, arena, made, buffer.address()));
      return made;
    } catch (RuntimeException e) {
      Failures.runAfter(e, arena::close);
      throw e;
    } finally {
      buffer.unhold();
    }
  }
}
