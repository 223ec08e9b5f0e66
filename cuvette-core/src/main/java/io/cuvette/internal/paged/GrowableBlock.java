package io.cuvette.internal.paged;

import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.RecoveryStep;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.base.Once;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.DirectMemory;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.fence.WorkMarker;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.Streams;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

/**
 * The memory of a buffer that grows and shrinks at one address. It shrinks first for those who use
 * it, and for the driver once the work is done that was queued before. Thread-safe; one thread at a
 * time grows or shrinks it.
 */
public final class GrowableBlock extends Block {
  /** Makes a buffer that has no bytes yet. */
  public interface Maker {
    Face make(long address, OpenStream stream);
  }

  /** How long an operation lets a thread go first that waits for operations to end. */
  private static final long COURTESY_NANOS = 10_000_000;

  private final Streams streams;
  private final Session session;
  private final Device device;
  private final PagedRange range;
  private final long maxBytes;
  private final String text;
  private final Runnable end = this::endByOwner;
  private final Once given = new Once();

  /** Held by the one thread that grows or shrinks it. */
  private final AtomicBoolean changing = new AtomicBoolean();

  /** What may still use the memory behind the end; for who changes it. */
  private final List<WorkMarker> workBehind = new ArrayList<>();

  private volatile long byteSize;

  /** Whether the thread that shrinks it waits for operations that began before. */
  private volatile boolean draining;

  private GrowableBlock(Object buffer, OpenStream stream, PagedRange range, long maxBytes) {
    super(buffer, stream.on().session().leaks().queue, stream.on().session().leaks().site(), null);
    this.streams = stream.state.streams;
    this.session = streams.session();
    this.device = stream.on();
    this.range = range;
    this.maxBytes = maxBytes;
    this.text = "growable buffer of at most %d bytes at 0x%x".formatted(maxBytes, range.address());
  }

  /**
   * Reserves addresses for a buffer, and makes it.
   *
   * @param maker makes the buffer
   * @param faces reads it
   */
  public static Face make(
      Maker maker, Faces faces, Paging paging, long maxBytes, OpenStream stream) {
    Session session = stream.on().session();
    session.leaks().drain();
    return session
        .gate()
        .make(() -> {
          PagedRange range = PagedRange.reserve(paging, maxBytes);
          try {
            return own(maker, faces, range, maxBytes, stream);
          } catch (OutOfMemoryError e) {
            range.free();
            throw e;
          }
        });
  }

  private static Face own(
      Maker maker, Faces faces, PagedRange range, long maxBytes, OpenStream stream) {
    Face buffer = maker.make(range.address(), stream);
    GrowableBlock block = new GrowableBlock(buffer, stream, range, maxBytes);
    try {
      block.session.children().add(block.end);
      faces.own(buffer, block);
      block.opened();
      return buffer;
    } catch (OutOfMemoryError e) {
      block.clear();
      block.session.children().remove(block.end);
      throw e;
    }
  }

  /** The bytes that can be used now. */
  public long byteSize() {
    return byteSize;
  }

  public long maxBytes() {
    return maxBytes;
  }

  @Override
  public long blockBytes() {
    return range.mappedBytes();
  }

  @Override
  public boolean deniesAccess(Device other) {
    return !range.paging().allows(other);
  }

  @Override
  public void hold(Memory part) {
    if (draining) {
      boolean _ = Await.until(() -> !draining, COURTESY_NANOS);
    }
    hold();
    long to = part.address() + part.byteSize() - range.address();
    if (part.byteSize() > 0 && to > byteSize) {
      unhold();
      throw new IllegalStateException(
          "%s ends %d bytes into the %s (expected: at most %d, to which it was shrunk)"
              .formatted(part, to, text, byteSize));
    }
  }

  /** Has at least so many bytes from now on; nothing is changed if that fails. */
  public void grow(long bytes) {
    Checks.inRange("newByteSize", bytes, 0, maxBytes);
    change(() -> {
      if (bytes <= byteSize) {
        return;
      }
      try {
        mapFor(bytes);
      } catch (CudaException e) {
        if (e.status() != CudaStatus.OUT_OF_MEMORY) {
          throw e;
        }
        relieve();
        mapAgain(bytes);
      }
      workBehind.forEach(WorkMarker::abandon);
      workBehind.clear();
      byteSize = bytes;
    });
  }

  private void mapFor(long bytes) {
    inside(() -> {
      device.context();
      range.growTo(bytes);
    });
  }

  /** Has pools give back what they keep. */
  private void relieve() {
    session.leaks().drain();
    boolean _ = session.frees().freeLeft();
    long _ = streams.relief().releaseCached(device); // first: what is idle is free after a wait
    if (!session.isInsideCallback()) { // else it may wait for the callback
      streams.relief().awaitFrees(device);
      long _ = streams.relief().releaseCached(device);
    }
  }

  private void mapAgain(long bytes) {
    try {
      mapFor(bytes);
    } catch (CudaException e) {
      throw e.status() == CudaStatus.OUT_OF_MEMORY ? outOfMemory(e, bytes) : e;
    }
  }

  private OutOfDeviceMemoryException outOfMemory(CudaException e, long bytes) {
    long mapped = range.mappedBytes();
    var details =
        new OutOfDeviceMemoryException.Details(
            device.id(),
            bytes - byteSize,
            range.pieceBytes(bytes) - mapped,
            mapped,
            byteSize,
            mapped - byteSize,
            0,
            0,
            0,
            0,
            0,
            maxBytes,
            DirectMemory.driverFree(device),
            RecoveryStep.RELEASE);
    var explained = new OutOfDeviceMemoryException(e.call(), details, maxBytes - mapped);
    explained.initCause(e);
    return explained;
  }

  /**
   * Has at most so many bytes from now on, and gives back what lies in whole pieces behind them
   * once work queued before is done: now if that can be waited for, else with the next change.
   */
  public void shrink(long bytes) {
    Checks.inRange("newByteSize", bytes, 0, maxBytes);
    session.leaks().drain(); // graphs that are gone by now
    change(() -> {
      if (bytes < byteSize) {
        cut(bytes);
        markWork();
      }
      workBehind.forEach(WorkMarker::await);
      settle();
    });
  }

  /** Ends the use of what lies behind: nothing that begins from here on reaches it. */
  private void cut(long bytes) {
    long before = byteSize;
    byteSize = bytes;
    boolean isCut = false;
    draining = true;
    try {
      if (lenders() > 0) {
        throw new IllegalStateException(text + " cannot shrink: a pool lends from it");
      }
      if (!Await.until(() -> holds() <= 1, PATIENCE_NANOS)) {
        throw new IllegalStateException(text + " cannot shrink: operations of others go on");
      }
      if (isCaptured()) {
        throw new IllegalStateException(
            text + " cannot shrink: a graph uses it (expected: its graphs closed first)");
      }
      isCut = true;
    } finally {
      draining = false;
      if (!isCut) {
        byteSize = before;
      }
    }
  }

  private void markWork() {
    Failures failures = new Failures();
    for (var use = uses(); use != null; use = use.next()) {
      WorkMarker marker;
      try {
        marker = use.stream().marker();
      } catch (RuntimeException e) {
        marker = WorkMarker.of(use.stream()); // asks again later
        failures.add(e);
      }
      if (marker != null) {
        workBehind.add(marker);
      }
    }
    failures.throwFirst();
  }

  /** Unmaps what is behind the end if the work that may use it is done. */
  private void settle() {
    workBehind.removeIf(WorkMarker::isDone);
    if (workBehind.isEmpty()) {
      inside(() -> range.shrinkTo(byteSize));
    }
  }

  /** A step of one thread at a time, while the memory cannot end. */
  private void change(Runnable step) {
    session.checkOpen();
    hold();
    try {
      Await.until(() -> changing.compareAndSet(false, true));
      try {
        step.run();
      } finally {
        changing.set(false);
      }
    } finally {
      unhold();
    }
  }

  private void inside(Runnable step) {
    session.gate().make((Supplier<Boolean>) () -> run(step));
  }

  private static boolean run(Runnable step) {
    step.run();
    return true;
  }

  @Override
  public String describe() {
    return text;
  }

  @Override
  public void giveBack() {
    if (isCaptured()) {
      streams.releaseAfterGraphs(this);
      return;
    }
    if (session.frees().putOff(false, this::releaseAgain)) {
      return;
    }
    for (var use = uses(); use != null; use = use.next()) {
      boolean _ = use.stream().await();
    }
    if (isWorkDone()) {
      session.gate().run(this::give);
    } else {
      streams.releaseAfterGraphs(this);
    }
  }

  /** A stream that captures now could not be waited for. */
  private boolean isWorkDone() {
    for (var use = uses(); use != null; use = use.next()) {
      if (!use.stream().isIdleSoon()) {
        return false;
      }
    }
    return true;
  }

  @Override
  public void failed() {
    session.leaks().failed(this);
  }

  private void endByOwner() {
    abandon();
    give();
  }

  private void give() {
    workBehind.forEach(WorkMarker::abandon);
    workBehind.clear();
    given.run(range::free);
    session.children().remove(end);
  }
}
