package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Many threads at once: right results, nothing left, nothing hangs. */
class ConcurrencyTest {
  private static final int THREADS = 10_000;

  private final SimulatedDriver driver =
      SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(2));

  @Test
  @Timeout(120)
  void tenThousandVirtualThreads_giveRightResults_andLeaveNothing() throws Exception {
    MemorySegment host = driver.memory().memHostAlloc(0, 8L * THREADS, 0);
    try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> futures = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        int number = i;
        futures.add(executor.submit(() -> work(number, host.asSlice(8L * number, 8))));
      }
      for (Future<?> future : futures) {
        future.get();
      }
    }
    for (int i = 0; i < THREADS; i++) {
      assertThat(host.getAtIndex(ValueLayout.JAVA_INT, 2L * i)).isEqualTo(i);
      assertThat(host.getAtIndex(ValueLayout.JAVA_INT, 2L * i + 1)).isEqualTo(i);
    }
    driver.memory().memFreeHost(0, host.address());
    assertThat(driver.report()).isEmpty();
    assertThat(driver.liveBytes(0) + driver.liveBytes(1) + driver.liveHostBytes()).isZero();
    driver.close();
  }

  /** Fills on one device, copies to the other, and back to the host, on three streams. */
  private void work(int number, MemorySegment result) {
    int device = number % 2;
    long one = driver.streams().streamCreateWithPriority(device, number % 3 == 0 ? 0 : 1, 0);
    long event = driver.events().eventCreate(device, 2);
    long first = driver.memory().memAlloc(device, 8);
    long second = driver.memory().memAlloc(1 - device, 8);
    driver.transfers().memsetD32Async(device, first, number, 2, one);
    driver.transfers().memcpyPeerAsync(device, second, 1 - device, first, device, 8, one);
    driver.events().eventRecord(device, event, one);
    driver.streams().streamWaitEvent(1 - device, 2, event);
    driver.transfers().memcpyDtoHAsync(1 - device, result, second, 2);
    if (number % 5 == 0) {
      while (!driver.streams().streamQuery(1 - device, 2)) {
        Thread.yield();
      }
    } else {
      driver.streams().streamSynchronize(1 - device, 2);
    }
    driver.memory().memFree(device, first);
    driver.memory().memFree(device, second);
    driver.events().eventDestroy(device, event);
    driver.streams().streamDestroy(device, one);
  }

  @Test
  @Timeout(60)
  void hostFunctionsOfManyThreads_allRunOnce() throws Exception {
    AtomicInteger ran = new AtomicInteger();
    try (ExecutorService executor = Executors.newVirtualThreadPerTaskExecutor()) {
      List<Future<?>> futures = new ArrayList<>();
      for (int i = 0; i < 500; i++) {
        futures.add(
            executor.submit(() -> {
              long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
              int[] mine = new int[1];
              driver.streams().launchHostFunc(0, stream, () -> mine[0] = ran.incrementAndGet());
              driver.streams().streamSynchronize(0, stream);
              assertThat(mine[0]).isPositive();
              driver.streams().streamDestroy(0, stream);
            }));
      }
      for (Future<?> future : futures) {
        future.get();
      }
    }
    assertThat(ran).hasValue(500);
    driver.close();
  }

  @Test
  void randomOrderedPrograms_giveTheAnswerOfSequentialOnes_forAllSeeds() {
    for (long seed = 0; seed < 60; seed++) {
      assertOrdered(seed);
    }
  }

  /**
   * Random copies between blocks on random streams of two devices, where an operation waits for the
   * last one on each block it uses; a plain array says what must come out.
   */
  private static void assertOrdered(long seed) {
    Random random = new Random(seed);
    int blocks = 6;
    try (SimulatedDriver sim =
        SimulatedDriver.open(SimulatedOptions.DEFAULTS.withDevices(2).withSeed(seed))) {
      long[] streams = new long[6];
      for (int i = 0; i < streams.length; i++) {
        streams[i] =
            i == 0 ? 0 : sim.streams().streamCreateWithPriority(i % 2, random.nextInt(2), 0);
      }
      long[] address = new long[blocks];
      long[] lastUse = new long[blocks];
      byte[] model = new byte[blocks];
      sim.devices().ctxEnablePeerAccess(0, 1); // the fills need it
      sim.devices().ctxEnablePeerAccess(1, 0);
      for (int i = 0; i < blocks; i++) {
        address[i] = sim.memory().memAlloc(i % 2, 100_000);
        sim.transfers().memsetD8Async(i % 2, address[i], (byte) 0, 100_000, 0);
      }
      sim.devices().ctxSynchronize(0);
      sim.devices().ctxSynchronize(1);
      for (int i = 0; i < 150; i++) {
        int which = random.nextInt(streams.length);
        int device = which % 2;
        int target = random.nextInt(blocks);
        int source = random.nextInt(blocks);
        for (int used : new int[] {target, source}) {
          if (lastUse[used] != 0) {
            sim.streams().streamWaitEvent(device, streams[which], lastUse[used]);
          }
        }
        if (source == target) {
          sim.transfers().memsetD8Async(device, address[target], (byte) i, 100_000, streams[which]);
          model[target] = (byte) i;
        } else {
          sim.transfers()
              .memcpyAsync(device, address[target], address[source], 100_000, streams[which]);
          model[target] = model[source];
        }
        long event = sim.events().eventCreate(device, 2);
        sim.events().eventRecord(device, event, streams[which]);
        lastUse[target] = event;
        lastUse[source] = event;
        if (random.nextInt(10) == 0) {
          sim.streams()
              .streamQuery(device, streams[random.nextInt(streams.length / 2) * 2 + device]);
        }
      }
      assertContents(sim, seed, address, model);
    }
  }

  private static void assertContents(SimulatedDriver sim, long seed, long[] address, byte[] model) {
    sim.devices().ctxSynchronize(0);
    sim.devices().ctxSynchronize(1);
    MemorySegment host = sim.memory().memHostAlloc(0, 100_000, 0);
    for (int i = 0; i < address.length; i++) {
      sim.transfers().memcpyDtoHAsync(0, host, address[i], 0);
      sim.streams().streamSynchronize(0, 0);
      assertThat(host.get(ValueLayout.JAVA_BYTE, 0)).as("seed %d", seed).isEqualTo(model[i]);
      assertThat(host.get(ValueLayout.JAVA_BYTE, 99_999)).isEqualTo(model[i]);
    }
  }
}
