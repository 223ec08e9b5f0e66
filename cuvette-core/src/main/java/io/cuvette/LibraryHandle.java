package io.cuvette;

import io.cuvette.driver.MathLibrary;
import io.cuvette.internal.interop.DriverHandle;
import io.cuvette.internal.interop.LibraryHandles;
import io.cuvette.internal.session.ObjectEnding;
import java.util.function.Consumer;

/**
 * A handle of cuBLAS or cuSOLVER that is lent for one stream: what is called with it queues its
 * work there. {@link CudaDevice#useLibrary} lends it. It may be used from any thread, one at a
 * time, also from virtual ones.
 */
public final class LibraryHandle implements AutoCloseable {
  private final DriverHandle lent;
  private final ObjectEnding ending;

  LibraryHandle(LibraryHandles handles, DriverHandle lent) {
    this.lent = lent;
    this.ending = handles.end(this, lent);
  }

  /**
   * {@return the handle of the library: cublasHandle_t, cusolverDnHandle_t or cusolverSpHandle_t}
   * Not to be used once this is closed: it is lent to others then. What is called with it may queue
   * work in the stream that is not seen here, as if {@link CudaStream#handle} was given out.
   *
   * @throws IllegalStateException if it or its stream is closed
   */
  public long handle() {
    ending.hold();
    try {
      return lent.giveOut();
    } finally {
      ending.unhold();
    }
  }

  /** {@return the library} */
  public MathLibrary library() {
    return lent.library;
  }

  /**
   * {@return the size in bytes of the workspace, from the allocator that was current; 0 if the
   * library uses memory of its own}
   *
   * @throws IllegalStateException if it is closed
   */
  public long workspaceBytes() {
    ending.hold();
    try {
      return lent.workspaceBytes();
    } finally {
      ending.unhold();
    }
  }

  /** Lets something be queued with the handle, which is not closed meanwhile. */
  void use(Consumer<DriverHandle> queue) {
    ending.hold();
    try {
      queue.accept(lent);
    } finally {
      ending.unhold();
    }
  }

  /** {@return whether it is closed} */
  public boolean isClosed() {
    return ending.ended();
  }

  /**
   * Gives the handle back, to be lent again, and its workspace in order of the stream. Work that
   * was queued goes on. Does nothing the second time.
   */
  @Override
  public void close() {
    ending.close(this);
  }

  @Override
  public String toString() {
    return ending.describe();
  }
}
