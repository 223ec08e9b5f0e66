package io.cuvette.testkit.support;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemoryCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingMemory;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/** Counts the page-locked memory that the driver has given, and can refuse frees. Thread-safe. */
public final class HostBooks extends ForwardingDriver {
  private final ConcurrentHashMap<Long, Long> live = new ConcurrentHashMap<>();
  private final AtomicLong liveBytes = new AtomicLong();
  private final AtomicLong mostBytes = new AtomicLong();
  private final AtomicInteger refusals = new AtomicInteger();

  /** Over another driver. */
  public HostBooks(CudaDriver delegate) {
    super(delegate);
  }

  /** What is out now, from before the call that allocates to after the one that frees. */
  public long liveBytes() {
    return liveBytes.get();
  }

  /** The most that was ever out. */
  public long mostBytes() {
    return mostBytes.get();
  }

  /** Makes the next frees fail. */
  public void refuseFrees(int count) {
    refusals.set(count);
  }

  private final MemoryCalls memoryCalls =
      new ForwardingMemory(delegate().memory()) {
        @Override
        public MemorySegment memHostAlloc(int device, long bytes, int flags) {
          MemorySegment memory = super.memHostAlloc(device, bytes, flags);
          live.put(memory.address(), bytes);
          mostBytes.accumulateAndGet(liveBytes.addAndGet(bytes), Math::max);
          return memory;
        }

        @Override
        public void memFreeHost(int device, long address) {
          if (refusals.getAndUpdate(left -> Math.max(0, left - 1)) > 0) {
            throw new CudaException(CudaStatus.UNKNOWN, "cuMemFreeHost", "refused");
          }
          Long bytes = live.remove(address); // first: another thread may get the same address
          super.memFreeHost(device, address);
          liveBytes.addAndGet(-bytes);
        }
      };

  @Override
  public MemoryCalls memory() {
    return memoryCalls;
  }
}
