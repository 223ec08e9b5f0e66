package io.cuvette.testkit.support;

import io.cuvette.Buffer;
import io.cuvette.CudaStream;
import io.cuvette.MemoryResource;
import java.util.concurrent.atomic.AtomicLong;

/** Plain device memory that counts what it has given and not got back. Thread-safe. */
public final class CountingUpstream implements MemoryResource {
  private final AtomicLong liveBytes = new AtomicLong();
  private final AtomicLong mostBytes = new AtomicLong();
  private final AtomicLong asked = new AtomicLong();

  @Override
  public Buffer allocate(long bytes, CudaStream stream) {
    asked.incrementAndGet();
    Buffer memory = MemoryResource.direct().allocate(bytes, stream);
    mostBytes.accumulateAndGet(liveBytes.addAndGet(bytes), Math::max);
    return stream
        .device()
        .adopt(
            memory.address(),
            bytes,
            () -> {
              memory.close();
              liveBytes.addAndGet(-bytes);
            });
  }

  /** What is out now. */
  public long liveBytes() {
    return liveBytes.get();
  }

  /** The most that was ever out. */
  public long mostBytes() {
    return mostBytes.get();
  }

  /** How often it was asked. */
  public long asked() {
    return asked.get();
  }
}
