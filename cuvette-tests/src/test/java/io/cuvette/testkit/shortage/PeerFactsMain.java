package io.cuvette.testkit.shortage;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.support.Drivers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Prints what a stream of one device may do with memory of another, with peer access and without.
 *
 * <p>Arguments: the device, such as {@code gpu} or {@code sim:devices=2}; it needs two.
 */
public final class PeerFactsMain {
  private static final long BYTES = 1 << 20;

  private final CudaDriver driver;
  private final MemorySegment pinned;
  private final long here;

  private PeerFactsMain(CudaDriver driver) {
    this.driver = driver;
    this.pinned = driver.memory().memHostAlloc(0, BYTES, 0);
    this.here = driver.memory().memAlloc(0, BYTES);
  }

  /** One call. */
  private interface Work {
    void run();
  }

  public static void main(String[] arguments) {
    try (CudaDriver driver = Drivers.open(arguments[0]);
        Arena arena = Arena.ofConfined()) {
      PeerFactsMain facts = new PeerFactsMain(driver);
      MemorySegment pageable = arena.allocate(BYTES);
      long plain = driver.memory().memAlloc(1, BYTES);
      long pool = driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 1, 0));
      long pooled = driver.ordered().memAllocFromPoolAsync(1, BYTES, pool, 0);
      driver.streams().streamSynchronize(1, 0);
      facts.all("plain, no access", plain, pageable);
      facts.all("pool, no access", pooled, pageable);
      driver.devices().ctxEnablePeerAccess(0, 1);
      facts.all("plain, access of the context", plain, pageable);
      facts.all("pool, access of the context", pooled, pageable);
      driver.pools().memPoolSetAccess(pool, 1, new int[] {0}, 3);
      facts.all("pool, access of the pool", pooled, pageable);
      driver.devices().ctxDisablePeerAccess(0, 1);
      facts.all("plain, access taken back", plain, pageable);
    }
  }

  private void all(String when, long there, MemorySegment pageable) {
    System.out.println("== " + when);
    attempt("fill", () -> driver.transfers().memsetD8Async(0, there, (byte) 1, BYTES, 0));
    attempt(
        "copy inside",
        () -> driver.transfers().memcpyAsync(0, there, there + BYTES / 2, BYTES / 2, 0));
    attempt("copy to here", () -> driver.transfers().memcpyAsync(0, here, there, BYTES, 0));
    attempt("copy from here", () -> driver.transfers().memcpyAsync(0, there, here, BYTES, 0));
    attempt("peer copy", () -> driver.transfers().memcpyPeerAsync(0, here, 0, there, 1, BYTES, 0));
    attempt(
        "copy to pinned",
        () -> driver.transfers().memcpyAsync(0, pinned.address(), there, BYTES, 0));
    attempt(
        "copy from pinned",
        () -> driver.transfers().memcpyAsync(0, there, pinned.address(), BYTES, 0));
    attempt("DtoH pinned", () -> driver.transfers().memcpyDtoHAsync(0, pinned, there, 0));
    attempt("HtoD pinned", () -> driver.transfers().memcpyHtoDAsync(0, there, pinned, 0));
    attempt("DtoH pageable", () -> driver.transfers().memcpyDtoHAsync(0, pageable, there, 0));
    attempt("HtoD pageable", () -> driver.transfers().memcpyHtoDAsync(0, there, pageable, 0));
    attempt("free", () -> driver.memory().memFree(0, driver.memory().memAlloc(1, BYTES)));
  }

  private void attempt(String what, Work work) {
    String outcome = "works";
    try {
      work.run();
      driver.streams().streamSynchronize(0, 0);
    } catch (CudaException e) {
      outcome = e.status().name();
    }
    System.out.printf("  %-16s %s%n", what, outcome);
  }
}
