package io.cuvette.internal.block;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.order.OpenStream;
import org.jspecify.annotations.Nullable;

/** Where a pool, or an operation, gets memory from: code of the user, or the library's own. */
public interface ChunkSource {
  /**
   * Allocates memory in order of a stream.
   *
   * @return null if code of the user returned that
   */
  @Nullable Memory allocate(long bytes, OpenStream stream);

  /** The same if that releases nothing and waits for nothing; null if there is no memory now. */
  default @Nullable Memory tryAllocate(long bytes, OpenStream stream) {
    try {
      return allocate(bytes, stream);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.OUT_OF_MEMORY) {
        throw e;
      }
      return null;
    }
  }

  /** The source itself, for messages, and to detect that it calls itself. */
  default Object user() {
    return this;
  }
}
