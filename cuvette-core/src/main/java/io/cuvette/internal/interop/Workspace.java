package io.cuvette.internal.interop;

import io.cuvette.internal.order.OpenStream;

/**
 * Memory that a library works in, in order of one stream. Immutable.
 *
 * @param address the first address
 * @param bytes the size in bytes
 * @param free gives it back, in order of the stream
 */
public record Workspace(long address, long bytes, Runnable free) {

  /** Where workspaces come from: the allocator that is current on the thread. */
  @FunctionalInterface
  public interface Source {
    /** Allocates one, which may run code of the user. */
    Workspace allocate(long bytes, OpenStream stream);
  }
}
