package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemLocationType;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimOp;
import io.cuvette.sim.internal.queue.SimQueue;
import io.cuvette.sim.internal.share.SharedEvent;
import io.cuvette.sim.internal.share.SharedPlace;
import io.cuvette.sim.internal.share.SharedPool;
import io.cuvette.sim.internal.share.SharedRing;
import io.cuvette.sim.internal.share.SimSharing;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** What simulated drivers share, without a driver: no call gets to these limits in little time. */
@EnabledOnOs(OS.LINUX)
class SharedPartsTest {
  private static final long PAGE = 4096;

  /** What a pool of any size has in its file at least. */
  private static final long FILE_BYTES = 512L << 20;

  private static final SharedPlace PLACE =
      new SharedPlace(UUID.randomUUID(), MemLocationType.DEVICE, 0);

  private final SimSharing sharing = new SimSharing(1L << 30);

  @AfterEach
  void close() {
    sharing.close();
    assertThat(sharing.files()).isZero();
  }

  private static void assertIsFull(SharedPool pool, long bytes) {
    assertThatExceptionOfType(SimRefusal.class)
        .isThrownBy(() -> pool.reserve(bytes))
        .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY))
        .withMessageContaining("requested=%d in a shared pool".formatted(bytes));
  }

  /** A process that touched what is behind it would end. */
  @Test
  void poolLendsRoom_toTheEndOfItsFile_andNoFurther() {
    SharedPool pool = SharedPool.create(sharing, PLACE, 1);
    assertIsFull(pool, FILE_BYTES + 1);
    SharedPool.Room all = pool.reserve(FILE_BYTES);
    assertIsFull(pool, 1);
    pool.release(all.extent());
    SharedPool.Room most = pool.reserve(FILE_BYTES - PAGE);
    assertIsFull(pool, PAGE + 1);
    SharedPool.Room last = pool.reserve(1);
    assertThat(last.extent().end()).isLessThanOrEqualTo(FILE_BYTES);
    assertIsFull(pool, 1);
    pool.release(last.extent());
    pool.release(most.extent());
    pool.close();
  }

  private static void noWait(BooleanSupplier until) {
    throw new AssertionError("there is an entry for the record");
  }

  @Test
  void recordBeyondTheEntries_waitsForTheOldest_andNoLonger() {
    SharedEvent event = SharedEvent.create(sharing, PLACE);
    SimDevice device = new SimDevice(0, 1, 0, 1024);
    List<SimOp> ops = new ArrayList<>();
    for (int i = 0; i < SharedRing.ENTRIES; i++) {
      SimOp op = SimOp.point(device.legacy(), 0);
      event.record(event.begin(SharedPartsTest::noWait), op);
      ops.add(op);
    }
    AtomicInteger waits = new AtomicInteger();
    long number =
        event.begin(until -> {
          waits.incrementAndGet();
          List<SimQueue> _ = ops.getFirst().finish(0);
          assertThat(until.getAsBoolean()).isTrue();
        });
    assertThat(number).isEqualTo(SharedRing.ENTRIES + 1);
    assertThat(waits).hasValue(1);
    event.release();
    event.abandon();
  }
}
