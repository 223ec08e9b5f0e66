package io.cuvette.testkit.shortage;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.PoolProperties;

/** Does things to the memory of a driver's first device and prints what becomes free or taken. */
abstract class MemoryFacts {
  static final long KIB = 1L << 10;
  static final long MIB = 1L << 20;
  static final long GIB = 1L << 30;

  final CudaDriver driver;

  MemoryFacts(CudaDriver driver) {
    this.driver = driver;
  }

  /** A part of the program, which may fail without the others. */
  interface Part {
    void run();
  }

  final void part(String name, Part part) {
    System.out.println("== " + name);
    long start = System.nanoTime();
    try {
      part.run();
    } catch (CudaException e) {
      say("failed: " + e.getMessage());
    }
    System.out.printf("   %.1f s%n", (System.nanoTime() - start) / 1e9);
  }

  final long free() {
    return driver.devices().memGetInfo(0).freeBytes();
  }

  final void say(String text) {
    System.out.printf("  free %,15d  %s%n", free(), text);
  }

  final void change(String text, Part part) {
    long before = free();
    part.run();
    System.out.printf("  %+,15d  %s%n", free() - before, text);
  }

  final void attempt(String text, Part part) {
    try {
      change(text, part);
    } catch (CudaException e) {
      say(text + ": " + e.status().name());
    }
  }

  final void prefetch(long address, long bytes, int location) {
    driver.memory().memPrefetchAsync(0, address, bytes, location, 0, 0);
    driver.streams().streamSynchronize(0, 0);
  }

  final long managed(long bytes) {
    return driver.memory().memAllocManaged(0, bytes, 1).address();
  }

  final void fill(long address, long bytes) {
    driver.transfers().memsetD8Async(0, address, (byte) 5, bytes, 0);
    driver.streams().streamSynchronize(0, 0);
  }

  final long pool(long limit) {
    return driver.pools().memPoolCreate(new PoolProperties(1, 0, 1, 0, limit));
  }
}
