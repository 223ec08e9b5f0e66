package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What others queue in a stream whose handle they have is work that only the driver knows of. */
@Timeout(60)
class ExposedStreamsTest extends OrderingFixture {
  private static final int BYTES = 2 << 20;

  private void expose(CudaStream stream) {
    assertThat(stream.handle()).isNotZero();
  }

  @ParameterizedTest
  @CsvSource({"CACHING, false", "CACHING, true", "ELASTIC, false", "ELASTIC, true"})
  void memoryFreedThere_isNoOtherStreams_beforeTheirWorkIsDone(Kind kind, boolean isUsedBefore) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    Buffer beside = pool.allocate(BYTES, home);
    if (isUsedBefore) {
      buffer.fill((byte) 1, home);
      home.synchronize();
      pool.allocate(3 * BYTES, other).close(); // asks whether it is idle
    }
    expose(home);
    busy.begin(home);
    buffer.close();
    try (Buffer early = pool.allocate(BYTES, other)) {
      assertThat(early.address()).isNotEqualTo(buffer.address());
    }
    busy.finish(home);
    beside.close();
  }

  @ParameterizedTest
  @CsvSource({"CACHING, false", "CACHING, true", "ELASTIC, false", "ELASTIC, true"})
  void memoryUsedThere_isPending_untilTheirWorkIsDone(Kind kind, boolean isUsedBefore) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, other);
    if (isUsedBefore) {
      buffer.fill((byte) 1, home);
      home.synchronize();
      Buffer before = pool.allocate(BYTES, other);
      before.recordUse(home);
      before.close();
      assertThat(stats(pool).pendingBytes()).as("home is idle").isZero();
    }
    expose(home);
    busy.begin(home);
    buffer.recordUse(home);
    buffer.close();
    assertThat(stats(pool).pendingBytes()).isEqualTo(BYTES);
    busy.finish(home);
    assertThat(stats(pool).pendingBytes()).isZero();
  }

  /** Exposed by who frees it: what comes later is no use of it. */
  @ParameterizedTest
  @CsvSource({"CACHING", "ELASTIC"})
  void streamThatNobodyElseHas_isKnownToBeIdle(Kind kind) {
    MemoryResource pool = pool(kind);
    Buffer buffer = pool.allocate(BYTES, home);
    Buffer beside = pool.allocate(BYTES, home);
    buffer.fill((byte) 1, home);
    home.synchronize();
    buffer.close();
    try (Buffer again = pool.allocate(BYTES, other)) {
      assertThat(again.address()).isEqualTo(buffer.address());
    }
    beside.close();
  }
}
