package io.cuvette.testkit.shortage;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.support.Drivers;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Prints how a driver counts the memory of its first device: what the context, the first work, each
 * size of allocation, managed memory and pools take from what cuMemGetInfo calls free.
 *
 * <p>Arguments: the device, such as {@code gpu} or {@code sim}.
 */
public final class MemoryFactsMain extends MemoryFacts {

  private MemoryFactsMain(CudaDriver driver) {
    super(driver);
  }

  public static void main(String[] arguments) {
    try (CudaDriver driver = Drivers.open(arguments[0])) {
      MemoryFactsMain facts = new MemoryFactsMain(driver);
      BrimFacts brim = new BrimFacts(driver);
      facts.part("first work", facts::firstWork);
      facts.part("plain sizes", facts::sizes);
      facts.part("plain mixes", facts::mixes);
      facts.part("slabs", facts::slabs);
      facts.part("pools", facts::pools);
      facts.part("pool limits", facts::limitedPools);
      facts.part("host memory", facts::host);
      facts.part("managed", facts::managed);
      facts.part("brim", brim::brim);
      facts.part("brim with a pool", brim::poolBrim);
      facts.part("brim with managed memory", brim::managedBrim);
      facts.part("streams", facts::streams);
      facts.part("end", () -> facts.say("all is given back"));
    }
  }

  private void firstWork() {
    say("of " + driver.devices().memGetInfo(0).totalBytes() + " in a new context");
    long[] block = new long[1];
    change("cuMemAlloc 4 MiB", () -> block[0] = driver.memory().memAlloc(0, 4 * MIB));
    change(
        "first fill",
        () -> {
          driver.transfers().memsetD8Async(0, block[0], (byte) 1, 4 * MIB, 0);
          driver.streams().streamSynchronize(0, 0);
        });
    MemorySegment pinned = driver.memory().memHostAlloc(0, 4 * MIB, 0);
    change("first copy to page-locked", () -> copy(pinned, block[0], 0));
    change(
        "first copy on the device",
        () -> {
          driver.transfers().memcpyAsync(0, block[0], block[0] + 2 * MIB, 2 * MIB, 0);
          driver.streams().streamSynchronize(0, 0);
        });
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pageable = arena.allocate(4 * MIB);
      change("first copy to pageable", () -> copy(pageable, block[0], 0));
      change(
          "first copy from pageable",
          () -> {
            driver.transfers().memcpyHtoDAsync(0, block[0], pageable, 0);
            driver.streams().streamSynchronize(0, 0);
          });
    }
    change(
        "first stream",
        () -> {
          long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
          copy(pinned, block[0], stream);
          driver.streams().streamDestroy(0, stream);
        });
    change("first event", () -> driver.events().eventDestroy(0, driver.events().eventCreate(0, 2)));
    change(
        "first callback",
        () -> {
          driver.streams().launchHostFunc(0, 0, () -> {});
          driver.streams().streamSynchronize(0, 0);
        });
    driver.memory().memFreeHost(0, pinned.address());
    change("cuMemFree", () -> driver.memory().memFree(0, block[0]));
  }

  private void copy(MemorySegment target, long source, long stream) {
    driver.transfers().memcpyDtoHAsync(0, target, source, stream);
    driver.streams().streamSynchronize(0, stream);
  }

  private void sizes() {
    for (long size :
        new long[] {
          1,
          512,
          4 * KIB,
          64 * KIB,
          64 * KIB + 1,
          100 * KIB,
          256 * KIB,
          512 * KIB,
          512 * KIB + 1,
          700 * KIB,
          MIB - 512,
          MIB,
          MIB + 1,
          MIB + 512,
          3 * MIB / 2,
          2 * MIB - 1,
          2 * MIB,
          2 * MIB + 1,
          3 * MIB,
          5 * MIB,
          16 * MIB,
          31 * MIB,
          32 * MIB + 1,
          33 * MIB,
          63 * MIB,
          65 * MIB,
          129 * MIB,
          257 * MIB,
          GIB + 1
        }) {
      count(size, Math.clamp(64 * MIB / size, 3, 200));
    }
  }

  /** Free memory after each of some allocations of a size, and after each free. */
  private void count(long size, int count) {
    long start = free();
    StringBuilder steps = new StringBuilder();
    List<Long> blocks = new ArrayList<>();
    long last = start;
    for (int i = 1; i <= count; i++) {
      blocks.add(driver.memory().memAlloc(0, size));
      long now = free();
      if (now != last && steps.length() < 60) {
        steps.append(" %d:%d".formatted(i, last - now));
      }
      last = now;
    }
    long taken = start - last;
    long apart = blocks.get(1) - blocks.get(0);
    List<Integer> back = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      driver.memory().memFree(0, blocks.get(i));
      long now = free();
      if (now != last && back.size() < 5) {
        back.add(i + 1);
      }
      last = now;
    }
    System.out.printf(
        "  %,13d bytes x %d: %,d each, apart %,d, align %,d; steps%s; back at frees %s; lost %,d%n",
        size,
        count,
        taken / count,
        apart,
        Long.lowestOneBit(blocks.get(0)),
        steps,
        back,
        start - last);
  }

  private void mixes() {
    String sizes = "";
    List<Long> blocks = new ArrayList<>();
    long first = 0;
    for (long size :
        new long[] {
          1,
          3 * MIB / 2,
          400 * KIB,
          MIB,
          700 * KIB,
          2 * MIB,
          512,
          3 * MIB,
          900 * KIB,
          900 * KIB,
          64 * KIB,
          MIB + 512,
          128 * KIB
        }) {
      long before = free();
      long block = driver.memory().memAlloc(0, size);
      first = first == 0 ? block : first;
      blocks.add(block);
      sizes += " %,d at %+,d took %,d;".formatted(size, block - first, before - free());
    }
    blocks.forEach(block -> driver.memory().memFree(0, block));
    System.out.println("  in turn:" + sizes);
  }

  /** Whether small blocks fill gaps, and when a slab goes back. */
  private void slabs() {
    say("before");
    List<Long> blocks = new ArrayList<>();
    for (int i = 0; i < 4096; i++) {
      blocks.add(driver.memory().memAlloc(0, 4 * KIB));
    }
    say("4,096 blocks of 4 KiB");
    for (int i = 0; i < blocks.size(); i += 2) {
      driver.memory().memFree(0, blocks.get(i));
    }
    say("every second one freed");
    List<Long> others = new ArrayList<>();
    for (int i = 0; i < 2048; i++) {
      others.add(driver.memory().memAlloc(0, 4 * KIB));
    }
    say("2,048 more of 4 KiB");
    others.forEach(block -> driver.memory().memFree(0, block));
    say("these freed");
    for (int i = 0; i < 256; i++) {
      others.set(i, driver.memory().memAlloc(0, 8 * KIB));
    }
    say("256 of 8 KiB");
    others.subList(0, 256).forEach(block -> driver.memory().memFree(0, block));
    for (int i = 1; i < blocks.size(); i += 2) {
      if (i % 512 != 1) {
        driver.memory().memFree(0, blocks.get(i));
      }
    }
    say("all freed but one in 512");
    for (int i = 1; i < blocks.size(); i += 512) {
      driver.memory().memFree(0, blocks.get(i));
    }
    say("all freed");
  }

  private void pools() {
    change("pool made", () -> driver.pools().memPoolDestroy(pool(0)));
    long pool = pool(0);
    driver.pools().memPoolSetAttribute(pool, 4, -1L);
    List<Long> blocks = new ArrayList<>();
    for (long size : new long[] {1, 512, 31 * MIB, 33 * MIB, 100 * MIB, 40 * MIB, MIB + 1}) {
      long before = free();
      long held = driver.pools().memPoolGetAttribute(pool, 5);
      blocks.add(driver.ordered().memAllocFromPoolAsync(0, size, pool, 0));
      driver.streams().streamSynchronize(0, 0);
      System.out.printf(
          "  %,12d from a pool: free %+,d, reserved %+,d, used %,d, at %+,d%n",
          size,
          free() - before,
          driver.pools().memPoolGetAttribute(pool, 5) - held,
          driver.pools().memPoolGetAttribute(pool, 7),
          blocks.getLast() - blocks.getFirst());
    }
    blocks.forEach(block -> driver.ordered().memFreeAsync(0, block, 0));
    driver.streams().streamSynchronize(0, 0);
    say("freed; reserved " + driver.pools().memPoolGetAttribute(pool, 5));
    driver.pools().memPoolTrimTo(pool, 0);
    say("trimmed; reserved " + driver.pools().memPoolGetAttribute(pool, 5));
    driver.pools().memPoolDestroy(pool);
    say("destroyed");
  }

  private void limitedPools() {
    for (long limit : new long[] {1, MIB, 5 * MIB, 32 * MIB, 33 * MIB, 100 * MIB}) {
      long pool = pool(limit);
      List<Long> blocks = new ArrayList<>();
      long size = Math.max(512, limit / 64 / 512 * 512);
      String end = "no end";
      try {
        while (blocks.size() < 10_000) {
          blocks.add(driver.ordered().memAllocFromPoolAsync(0, size, pool, 0));
        }
      } catch (CudaException e) {
        end = e.status().name();
      }
      System.out.printf(
          "  limit %,d: %d blocks of %,d, then %s; reserved %,d used %,d%n",
          limit,
          blocks.size(),
          size,
          end,
          driver.pools().memPoolGetAttribute(pool, 5),
          driver.pools().memPoolGetAttribute(pool, 7));
      blocks.forEach(block -> driver.ordered().memFreeAsync(0, block, 0));
      driver.streams().streamSynchronize(0, 0);
      driver.pools().memPoolDestroy(pool);
    }
  }

  private void host() {
    MemorySegment[] pinned = new MemorySegment[1];
    change("cuMemHostAlloc 1 GiB", () -> pinned[0] = driver.memory().memHostAlloc(0, GIB, 0));
    change("freed", () -> driver.memory().memFreeHost(0, pinned[0].address()));
  }

  private void managed() {
    long[] block = new long[1];
    long half = GIB / 2;
    MemorySegment[] views = new MemorySegment[1];
    change("cuMemAllocManaged 1 GiB", () -> views[0] = driver.memory().memAllocManaged(0, GIB, 1));
    MemorySegment view = views[0];
    block[0] = view.address();
    change("half prefetched to the device", () -> prefetch(block[0], half, 1));
    change("all prefetched to the device", () -> prefetch(block[0], GIB, 1));
    change("all prefetched to the host", () -> prefetch(block[0], GIB, 2));
    change("1 MiB filled by the device", () -> fill(block[0], MIB));
    change("another 100 bytes filled", () -> fill(block[0] + 100 * MIB, 100));
    change("all filled", () -> fill(block[0], GIB));
    change("all written by the host", () -> view.fill((byte) 3));
    change("all prefetched again", () -> prefetch(block[0], GIB, 1));
    change(
        "all read by the host",
        () -> {
          long sum = 0;
          for (long i = 0; i < GIB; i += 4096) {
            sum += view.get(ValueLayout.JAVA_BYTE, i);
          }
          System.out.print(sum == 0 ? "?" : "");
        });
    change("freed", () -> driver.memory().memFree(0, block[0]));
    for (long size : new long[] {1, 64 * KIB, MIB, 3 * MIB}) {
      change(size + " bytes of managed memory", () -> block[0] = managed(size));
      change("... filled", () -> fill(block[0], size));
      change("... freed", () -> driver.memory().memFree(0, block[0]));
    }
  }

  private void streams() {
    for (int count : new int[] {1, 16, 64, 256, 1024}) {
      List<Long> streams = new ArrayList<>();
      change(
          count + " streams",
          () -> {
            for (int i = 0; i < count; i++) {
              streams.add(driver.streams().streamCreateWithPriority(0, 1, 0));
            }
          });
      change(
          "... destroyed",
          () -> streams.forEach(stream -> driver.streams().streamDestroy(0, stream)));
    }
    List<Long> events = new ArrayList<>();
    change(
        "10,000 events recorded",
        () -> {
          for (int i = 0; i < 10_000; i++) {
            events.add(driver.events().eventCreate(0, 2));
            driver.events().eventRecord(0, events.getLast(), 0);
          }
        });
    driver.streams().streamSynchronize(0, 0);
    change("... destroyed", () -> events.forEach(event -> driver.events().eventDestroy(0, event)));
  }
}
