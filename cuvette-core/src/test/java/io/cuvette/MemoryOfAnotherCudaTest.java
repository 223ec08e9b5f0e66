package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.TracingDriver;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Two {@code Cuda}s of one process: what one has page-locked may be pageable, or gone, before the
 * work of the other is done, so that no driver is left with it.
 */
@Timeout(60)
class MemoryOfAnotherCudaTest {
  private static final int BYTES = 1 << 20;

  private final CudaDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final List<String> calls = new CopyOnWriteArrayList<>();
  private final Cuda first = open();
  private final Cuda second = open();
  private final CudaStream stream = second.device(0).createStream();
  private final Buffer buffer = second.allocate(BYTES, stream);

  private Cuda open() {
    CudaDriver same =
        new ForwardingDriver(driver) {
          @Override
          public void close() {}
        };
    return Cuda.open(
        CudaOptions.DEFAULTS
            .withDriver(same)
            .withDecorator(each -> TracingDriver.of(each, call -> calls.add(call.call()))));
  }

  @AfterEach
  void close() {
    second.close();
    first.close();
    driver.close();
  }

  private void assertStaged(MemorySegment host) {
    for (int bytes : new int[] {100, BYTES}) {
      MemorySegment part = host.asSlice(0, bytes);
      List<BiConsumer<Buffer, MemorySegment>> ways =
          List.of(
              Buffer::copyFrom,
              (to, from) -> to.copyFrom(from, stream),
              (to, from) -> to.gatherFrom(List.of(from)));
      for (BiConsumer<Buffer, MemorySegment> way : ways) {
        host.fill((byte) 7);
        calls.clear();
        way.accept(buffer, part);
        assertThat(direct()).as("%d bytes: %s", bytes, calls).isZero();
        host.fill((byte) 0);
        buffer.copyTo(part);
        buffer.copyTo(part, stream);
        assertThat(direct()).as("%d bytes back: %s", bytes, calls).isZero();
        stream.synchronize();
        assertThat(part.toArray(ValueLayout.JAVA_BYTE)).containsOnly(7);
      }
    }
  }

  private long direct() {
    return calls.stream()
        .filter(call -> call.startsWith("memcpyHtoDAsync") || call.startsWith("memcpyDtoHAsync"))
        .count();
  }

  @Test
  void whatAnotherHasRegistered_isStaged() {
    MemorySegment host = Arena.ofAuto().allocate(BYTES);
    try (PinnedBuffer _ = first.registerHost(host)) {
      assertStaged(host);
    }
    try (PinnedBuffer _ = first.registerHost(host.asSlice(50))) {
      assertStaged(host);
    }
  }

  @Test
  void buffersOfAnother_areStaged() {
    try (PinnedBuffer other = first.allocatePinned(BYTES)) {
      assertStaged(other.segment());
    }
  }

  @Test
  void poolOfAnother_isRefused_forStreamsAndDevices() {
    MemoryPool pool = new MemoryPool(first);
    for (long bytes : new long[] {0, BYTES}) {
      assertThatThrownBy(() -> pool.allocate(bytes, stream))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage(stream + " belongs to another Cuda than the pool");
    }
    assertThatThrownBy(() -> pool.freeAllBlocks(stream))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(stream + " belongs to another Cuda than the pool");
    AsyncMemoryPool async = new AsyncMemoryPool(first);
    for (Consumer<CudaDevice> call :
        List.<Consumer<CudaDevice>>of(pool::freeAllBlocks, pool::stats, async::limit)) {
      assertThatThrownBy(() -> call.accept(second.device(0)))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith(second.device(0) + " belongs to another Cuda");
    }
  }

  @Test
  void streamOfAnother_isNotWaitedFor() {
    CudaStream other = first.device(0).nullStream();
    assertThatThrownBy(() -> stream.waitFor(other))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(other + " belongs to another Cuda");
  }

  @Test
  void itsOwn_isGivenToTheDriver() {
    try (PinnedBuffer own = second.allocatePinned(BYTES)) {
      buffer.copyFrom(own.segment());
      assertThat(direct()).isOne();
    }
  }
}
