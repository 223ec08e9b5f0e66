package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.TransferCalls;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Whatever reads or writes memory of the device is seen to do so, to its last row. */
class SanitizerTransfersTest extends SanitizerTestBase {
  private final TransferCalls transfers = driver.transfers();
  private final long first = stream();
  private final long second = stream();

  private interface Use {
    void of(long address, long stream);
  }

  private static BoxCopy rows(long target, long source) {
    return new BoxCopy(
        new BoxCopy.Side(target, 512, 2), new BoxCopy.Side(source, 512, 2), 512, 2, 1);
  }

  /** Each uses the upper half of 1,024 bytes, and perhaps more of them. */
  private Map<String, Use> reads() {
    long target = memory();
    Map<String, Use> all = new LinkedHashMap<>();
    all.put("DtoH", (at, s) -> transfers.memcpyDtoHAsync(0, HOST.asSlice(0, 1024), at, s));
    all.put("DtoD", (at, s) -> transfers.memcpyAsync(0, target, at, 1024, s));
    all.put("peer", (at, s) -> transfers.memcpyPeerAsync(0, target, 0, at, 0, 1024, s));
    all.put("rows", (at, s) -> transfers.memcpy3DAsync(0, rows(target, at), s));
    all.put(
        "batch",
        (at, s) ->
            transfers.memcpyBatchAsync(
                0,
                new long[] {target, target + 512},
                new long[] {at, at + 512},
                new long[] {512, 512},
                s));
    return all;
  }

  private Map<String, Use> writes() {
    long source = memory();
    write(source, first);
    driver.streams().streamSynchronize(0, first);
    Map<String, Use> all = new LinkedHashMap<>();
    all.put("HtoD", (at, s) -> transfers.memcpyHtoDAsync(0, at, HOST.asSlice(0, 1024), s));
    all.put("DtoD", (at, s) -> transfers.memcpyAsync(0, at, source, 1024, s));
    all.put("peer", (at, s) -> transfers.memcpyPeerAsync(0, at, 0, source, 0, 1024, s));
    all.put("rows", (at, s) -> transfers.memcpy3DAsync(0, rows(at, source), s));
    all.put(
        "batch",
        (at, s) ->
            transfers.memcpyBatchAsync(
                0,
                new long[] {at, at + 512},
                new long[] {source, source + 512},
                new long[] {512, 512},
                s));
    all.put("D8", (at, s) -> transfers.memsetD8Async(0, at, (byte) 1, 1024, s));
    all.put("D16", (at, s) -> transfers.memsetD16Async(0, at, (short) 1, 512, s));
    all.put("D32", (at, s) -> transfers.memsetD32Async(0, at, 1, 256, s));
    return all;
  }

  @Test
  void memoryThatIsWrittenMeanwhile_isARace() {
    Map<String, Use> all = reads();
    writes().forEach((name, use) -> all.put(name + " writes", use));
    all.forEach((name, use) -> {
      long address = memory();
      write(address, first);
      driver.streams().streamSynchronize(0, first);
      use.of(address, first);
      assertThat(reports).as(name).isEmpty();
      transfers.memsetD8Async(0, address + 1023, (byte) 2, 1, second);
      assertThat(reports).as(name).extracting(SanitizerReport::misuse).containsOnly(Misuse.RACE);
      assertThat(reports).as(name).hasSize(1);
      driver.devices().ctxSynchronize(0);
      reports.clear();
    });
  }

  @Test
  void memoryThatIsReadMeanwhile_isNoRaceForReads_andOneForWrites() {
    Map<String, Use> reads = reads();
    Map<String, Use> writes = writes();
    long address = memory();
    write(address, first);
    driver.devices().ctxSynchronize(0);
    reads.forEach((name, use) -> {
      read(address, second);
      use.of(address, first);
      assertThat(reports).as(name).isEmpty();
      driver.devices().ctxSynchronize(0);
    });
    writes.forEach((name, use) -> {
      transfers.memcpyDtoHAsync(0, HOST.asSlice(2048, 1), address + 1023, second);
      use.of(address, first);
      assertThat(reports).as(name).extracting(SanitizerReport::misuse).contains(Misuse.RACE);
      driver.devices().ctxSynchronize(0);
      reports.clear();
    });
  }

  /** The driver may be done with a copy before it is noted, and another thread learn of it. */
  @ParameterizedTest
  @CsvSource({"memcpyAsync, 1", "memcpyAsync, 3", "memsetD8Async, 1", "memsetD8Async, 7"})
  void memoryThatWorkWrites_beforeItsCallHasReturned_isNotOfTheHost(String call, long seed) {
    AtomicReference<Runnable> meanwhile = new AtomicReference<>(() -> {});
    CudaDriver below =
        TracingDriver.of(
            SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed)),
            traced -> {
              if (traced.call().startsWith(call)) {
                meanwhile.get().run();
              }
            });
    try (SanitizerDriver over = SanitizerDriver.reporting(below, reports::add, Misuse.LEAK)) {
      TransferCalls copies = over.transfers();
      long stream = over.streams().streamCreateWithPriority(0, 1, 0);
      long memory = over.memory().memAlloc(0, 1024);
      MemorySegment pinned = over.memory().memHostAlloc(0, 1024, 0).fill((byte) 1);
      copies.memsetD8Async(0, memory, (byte) 2, 1024, stream);
      copies.memcpyAsync(0, memory + 512, pinned.address(), 512, stream);
      meanwhile.set(() -> over.streams().streamSynchronize(0, stream));
      if (call.equals("memcpyAsync")) {
        copies.memcpyAsync(0, pinned.address(), memory, 512, stream);
      } else {
        copies.memsetD8Async(0, pinned.address(), (byte) 2, 512, stream);
      }
      meanwhile.set(() -> {});
      assertThat(pinned.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 2);
    }
    assertSilent();
  }
}
