package io.cuvette.internal.block;

import io.cuvette.BufferDescriptor;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.fence.Capture;
import io.cuvette.internal.lifetime.HostViews;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.stream.UsedMemory;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.ReferenceQueue;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The memory of a buffer, and its end: with its views, and once pools lend nothing from it. */
public abstract class Block extends UsedMemory {
  private static final VarHandle LOANS;

  static {
    try {
      LOANS = MethodHandles.lookup().findVarHandle(Block.class, "loans", Loans.class);
    } catch (ReflectiveOperationException e) {
      throw new ExceptionInInitializerError(e);
    }
  }

  /** What pools lend from the memory, made for the first of them. */
  private volatile @Nullable Loans loans;

  /** The segment through which users see the memory, if it was requested. */
  private volatile HostViews<UsedMemory>.@Nullable View view;

  public Block(
      Object buffer,
      @Nullable ReferenceQueue<Object> queue,
      @Nullable Throwable site,
      @Nullable DriverStream home) {
    super(buffer, queue, site, home);
  }

  /** Whether the memory is another process's. */
  public boolean isMapped() {
    return false;
  }

  /**
   * What another process imports a part of the memory by.
   *
   * @throws IllegalStateException if it cannot be shared, saying what could
   */
  public BufferDescriptor descriptor(Memory part) {
    throw PlainExport.cannot(part, "this kind of memory belongs to its process");
  }

  /**
   * Whether a device that is not the memory's own has no access to it: memory of a driver's pool is
   * its device's alone until others are granted access. Others' plain memory can be copied without.
   */
  public boolean deniesAccess(Device device) {
    return false;
  }

  /**
   * Holds it for an operation on a part.
   *
   * @throws IllegalStateException if it is closed, or the part is there no longer
   */
  public void hold(Memory part) {
    hold();
  }

  /** Notes that advice is about to be set for the memory, which lasts until it is freed. */
  public void advised() {}

  /**
   * How many pools the memory came through; {@link BlockReports#FOREIGN} if it is somebody else's.
   */
  public int depth() {
    return 0;
  }

  @Override
  public long bytes() {
    return blockBytes();
  }

  /**
   * Begins to hold memory that upstream gave to a pool.
   *
   * @throws IllegalStateException if a pool lends from it already, or it is closed
   */
  public static Loans.Loan lend(Memory memory, long bytes) {
    return memory.block().loans().add(memory, bytes);
  }

  /**
   * Begins to hold memory that code outside of Java uses, however often.
   *
   * @return lets go of it
   * @throws IllegalStateException if it is closed
   */
  public static Runnable lend(Memory memory) {
    return memory.block().loans().add(memory);
  }

  private Loans loans() {
    if (loans == null) {
      boolean _ = LOANS.compareAndSet(this, null, new Loans());
    }
    return Objects.requireNonNull(loans);
  }

  @Override
  public final int lenders() {
    Loans all = loans;
    return all == null ? 0 : all.open();
  }

  @Override
  public final boolean isOut() {
    Loans all = loans;
    return all != null && all.isForeign();
  }

  /** The view of this memory; the caller holds it, and is the only one that makes a view. */
  public final void viewedThrough(HostViews<UsedMemory>.View made) {
    view = made;
  }

  /** Ends the buffer and its views for an owner that takes the memory back itself. */
  public final void abandon() {
    takeOver();
    Await.until(this::closeView);
  }

  /**
   * Ends the views, then the memory. A view in use by another thread refuses, and nothing changed.
   */
  @Override
  public final void finish() {
    if (!closeViewOrResume()) {
      throw new IllegalStateException(describe() + " cannot be closed: its segment is in use");
    }
    super.finish();
  }

  @Override
  public final void release() {
    DriverStream own = home;
    if (own != null && own.isExposed()) {
      release(own);
    } else {
      giveBack();
    }
  }

  /**
   * What its own stream captures at this moment may use the memory. Where there is no Java heap to
   * note that, the memory stays out until the end of its owner: a graph may have it.
   */
  private void release(DriverStream own) {
    RuntimeException failure = null;
    try {
      Capture capture = own.capturing.captureAtEnd();
      if (capture != null) {
        useLast(capture);
      }
    } catch (RuntimeException e) {
      failure = e;
    }
    try {
      giveBack();
    } catch (RuntimeException e) {
      failure = Failures.joined(failure, e);
    }
    if (failure != null) {
      throw failure;
    }
  }

  /** Whether others reach it by peer access to its whole device; else they are granted access. */
  public boolean isPlain() {
    return false;
  }

  /** Gives the memory back once all that used it is done. */
  public abstract void giveBack();

  /** A user without the buffer may be at its segment. */
  @Override
  public final boolean reclaim() {
    if (wouldWait() || !end()) {
      return false;
    }
    if (!closeViewOrResume()) {
      return false;
    }
    super.finish();
    return true;
  }

  /** False, and nothing has changed, if a view is in use at the moment. */
  private boolean closeViewOrResume() {
    boolean closed = false;
    try {
      closed = closeView();
      return closed;
    } finally {
      if (!closed) {
        resume();
      }
    }
  }

  /** False if a view is in use at the moment. */
  private boolean closeView() {
    HostViews<UsedMemory>.View open = view;
    return open == null || open.close();
  }
}
