package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Page-locked memory that the host changes while queued work reads it. */
class SanitizerHostRaceTest {
  private static final long BYTES = 4096;

  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();
  private SanitizerDriver driver = open(1);
  private final long stream = stream();
  private final long memory = driver.memAlloc(0, BYTES);
  private final MemorySegment pinned = driver.memHostAlloc(0, BYTES, 0);

  private SanitizerDriver open(long seed) {
    return SanitizerDriver.reporting(
        SimulatedDriver.open(SimulatedOptions.DEFAULTS.withSeed(seed)), reports::add, Misuse.LEAK);
  }

  private long stream() {
    return driver.streamCreateWithPriority(0, 1, 0);
  }

  @AfterEach
  void close() {
    driver.close();
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 7, 42})
  void memoryFilledAfterItsCopyWasQueued_isNamed_whateverTheSeed(long seed) {
    driver.close();
    driver = open(seed);
    long late = stream();
    long target = driver.memAlloc(0, BYTES);
    MemorySegment source = driver.memHostAlloc(0, BYTES, 0);
    driver.memcpyHtoDAsync(0, target, source.asSlice(16, 64), late);
    source.fill((byte) 2);
    driver.streamSynchronize(0, late);

    assertThat(reports).extracting(SanitizerReport::misuse).containsExactly(Misuse.HOST_RACE);
    assertThat(reports.getFirst().message())
        .contains("read of 64 bytes")
        .contains("on stream 0x%x".formatted(late))
        .contains("block 0x%x of 4096 bytes".formatted(source.address()));
    assertThat(reports.getFirst().sites().getFirst().call()).startsWith("memcpyHtoDAsync(");
  }

  @Test
  void memoryBesideTheCopy_andMemoryOfDoneCopies_mayBeChanged() {
    driver.memcpyAsync(0, memory, pinned.address(), BYTES / 2, stream);
    pinned.asSlice(BYTES / 2).fill((byte) 1);
    driver.streamSynchronize(0, stream);
    pinned.fill((byte) 2);
    driver.memcpyAsync(0, memory, pinned.address(), BYTES, stream);
    driver.ctxSynchronize(0);
    pinned.fill((byte) 3);
    driver.ctxSynchronize(0);

    assertThat(reports).isEmpty();
  }

  @Test
  void memoryThatTheDeviceWrites_beforeOrAfter_isNotOfTheHost() {
    driver.memsetD8Async(0, memory, (byte) 5, BYTES, stream);
    driver.memcpyHtoDAsync(0, memory, pinned, stream);
    driver.memsetD8Async(0, memory, (byte) 6, BYTES, stream);
    driver.memcpyDtoHAsync(0, pinned, memory, stream);
    driver.memcpyHtoDAsync(0, memory, pinned, stream);
    driver.streamSynchronize(0, stream);

    assertThat(reports).isEmpty();
  }

  @Test
  void hostFunction_mayFillMemory_beforeACopyAndAfterOne() {
    driver.memcpyHtoDAsync(0, memory, pinned, stream);
    driver.launchHostFunc(0, stream, () -> pinned.fill((byte) 8));
    driver.memcpyHtoDAsync(0, memory, pinned, stream);
    driver.streamSynchronize(0, stream);

    assertThat(reports).isEmpty();
  }

  @Test
  void memoryThatIsFreed_isNotLookedAt() {
    driver.memcpyHtoDAsync(0, memory, pinned, stream);
    driver.streamSynchronize(0, stream);
    driver.memFreeHost(0, pinned.address());
    driver.ctxSynchronize(0);

    assertThat(reports).isEmpty();
  }
}
