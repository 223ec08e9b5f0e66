package io.cuvette.testkit.support;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedAllocator;
import io.cuvette.PinnedBuffer;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.util.ArrayList;
import java.util.List;

/**
 * An upstream of device or page-locked memory that is out of memory while a chunk of its own is
 * open. Used by one thread.
 */
public final class OneChunk implements MemoryResource, PinnedAllocator {
  private final Cuda cuda;
  private final List<Buffer> allocated = new ArrayList<>();

  public OneChunk(Cuda cuda) {
    this.cuda = cuda;
  }

  @Override
  public Buffer allocate(long bytes, CudaStream stream) {
    requireAllClosed();
    return noted(cuda.allocate(bytes, stream));
  }

  @Override
  public PinnedBuffer allocate(long bytes) {
    requireAllClosed();
    return noted(cuda.directPinned().allocate(bytes));
  }

  private void requireAllClosed() {
    if (allocated.stream().anyMatch(chunk -> !chunk.isClosed())) {
      throw new CudaException(CudaStatus.OUT_OF_MEMORY, "one()", "one at a time");
    }
  }

  private <B extends Buffer> B noted(B chunk) {
    allocated.add(chunk);
    return chunk;
  }

  /** How many chunks it has allocated. */
  public int count() {
    return allocated.size();
  }
}
