package io.cuvette.testkit.shortage;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongUnaryOperator;

/** What still fits when the memory is nearly full. */
final class BrimFacts extends MemoryFacts {

  BrimFacts(CudaDriver driver) {
    super(driver);
  }

  /** Allocates until no more is given; the blocks, the last size first. */
  private List<Long> fillUp(LongUnaryOperator allocate, long... sizes) {
    List<Long> blocks = new ArrayList<>();
    for (long size : sizes) {
      int count = 0;
      try {
        while (count < 1_000_000) {
          blocks.add(allocate.applyAsLong(size));
          count++;
        }
      } catch (CudaException e) {
        say("after %d of %,d: %s".formatted(count, size, e.status().name()));
      }
    }
    return blocks;
  }

  void brim() {
    long start = free();
    say("before");
    largest("empty", start);
    List<Long> large = fillUp(bytes -> driver.memory().memAlloc(0, bytes), GIB, 64 * MIB);
    List<Long> pages = fillUp(bytes -> driver.memory().memAlloc(0, bytes), 2 * MIB);
    List<Long> small = fillUp(bytes -> driver.memory().memAlloc(0, bytes), 64 * KIB, 4 * KIB, 1);
    small.forEach(block -> driver.memory().memFree(0, block));
    say("small ones freed");
    driver.memory().memFree(0, large.removeLast());
    say("64 MiB freed");
    largest("with one hole of 64 MiB", 128 * MIB);
    List<Long> half = fillUp(bytes -> driver.memory().memAlloc(0, bytes), 2 * MIB);
    pages.addAll(half);
    say("filled with 2 MiB; " + pages.size() + " of them");
    for (int i = 0; i < 6 && large.size() > 1; i++) {
      driver.memory().memFree(0, large.remove(0));
    }
    List<Long> many = fillUp(bytes -> driver.memory().memAlloc(0, bytes), 2 * MIB);
    for (int i = 0; i < many.size(); i += 2) {
      driver.memory().memFree(0, many.get(i));
    }
    say("every second of %d of 2 MiB freed".formatted(many.size()));
    largest("in holes of 2 MiB", many.size() * 2 * MIB);
    for (int i = 1; i < many.size(); i += 2) {
      driver.memory().memFree(0, many.get(i));
    }
    pages.forEach(block -> driver.memory().memFree(0, block));
    large.forEach(block -> driver.memory().memFree(0, block));
    say("all freed");
  }

  /** The largest block there is, by halving. */
  private void largest(String when, long most) {
    long good = 0;
    long bad = most + MIB;
    long free = free();
    while (bad - good > 64 * KIB) {
      long size = (good + bad) / 2;
      try {
        driver.memory().memFree(0, driver.memory().memAlloc(0, size));
        good = size;
      } catch (CudaException e) {
        bad = size;
      }
    }
    System.out.printf("  %s: free %,d, the largest block %,d%n", when, free, good);
  }

  void poolBrim() {
    List<Long> large = fillUp(bytes -> driver.memory().memAlloc(0, bytes), 4 * GIB, 128 * MIB);
    driver.memory().memFree(0, large.removeLast());
    driver.memory().memFree(0, large.removeLast());
    say("two of 128 MiB free");
    long pool = pool(0);
    List<Long> blocks =
        fillUp(
            bytes -> driver.ordered().memAllocFromPoolAsync(0, bytes, pool, 0), 20 * MIB, MIB, 512);
    say("reserved " + driver.pools().memPoolGetAttribute(pool, 5));
    blocks.forEach(block -> driver.ordered().memFreeAsync(0, block, 0));
    driver.streams().streamSynchronize(0, 0);
    say("freed, reserved " + driver.pools().memPoolGetAttribute(pool, 5));
    driver.pools().memPoolDestroy(pool);
    large.forEach(block -> driver.memory().memFree(0, block));
  }

  void managedBrim() {
    List<Long> large = fillUp(bytes -> driver.memory().memAlloc(0, bytes), 4 * GIB, 256 * MIB);
    for (int i = 0; i < 4; i++) {
      driver.memory().memFree(0, large.removeLast());
    }
    say("a rest of four times 256 MiB");
    long block = managed(2 * GIB);
    change("512 MiB of managed memory prefetched", () -> prefetch(block, GIB / 2, 1));
    largest("beside it", 2 * GIB);
    say("after that");
    attempt("2 GiB prefetched into what is left", () -> prefetch(block, 2 * GIB, 1));
    attempt("2 GiB filled by the device", () -> fill(block, 2 * GIB));
    largest("beside that", 2 * GIB);
    say("after that");
    attempt("cuMemAlloc 256 MiB", () -> large.add(driver.memory().memAlloc(0, 256 * MIB)));
    driver.memory().memFree(0, block);
    say("managed memory freed");
    large.forEach(one -> driver.memory().memFree(0, one));
    say("all freed");
  }
}
