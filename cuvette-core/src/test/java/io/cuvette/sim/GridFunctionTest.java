package io.cuvette.sim;

import static io.cuvette.sim.SimulatedParameter.INT;
import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.LaunchWatcher;
import io.cuvette.driver.LaunchWatcher.Touch;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Kernels whose Java function is called once for a grid, and that move bytes in pieces. */
class GridFunctionTest {
  private static final AtomicInteger NAMES = new AtomicInteger();
  private static final LaunchShape SHAPE =
      new LaunchShape(64, 2, 1, 128, 1, 1, 2, 1, 1, 0, false, false);

  private final SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse(""));

  @AfterEach
  void close() {
    driver.close();
  }

  private void launch(GridFunction function, long address, int number, LaunchWatcher watcher) {
    SimulatedKernel kernel =
        SimulatedKernel.of("grid" + NAMES.incrementAndGet(), function, POINTER, INT);
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
      MemorySegment values = Arena.ofAuto().allocate(16, 8);
      values.set(ValueLayout.JAVA_LONG, 0, address);
      values.set(ValueLayout.JAVA_INT, 8, number);
      LaunchParameters parameters =
          new LaunchParameters(
              values, List.of(new KernelParameter(0, 8), new KernelParameter(8, 4)));
      long handle = driver.kernels().libraryGetKernel(library, kernel.name());
      driver.kernels().launchKernel(0, 0, handle, SHAPE, parameters.watchedBy(watcher));
      driver.streams().streamSynchronize(0, 0);
    }
  }

  @Test
  void function_isCalledOnceForAGrid_withOneThread() {
    AtomicInteger calls = new AtomicInteger();
    long memory = driver.memory().memAlloc(0, 64);
    launch(
        thread -> {
          calls.incrementAndGet();
          assertThat(thread.gridDimX() * thread.blockDimX() * thread.clusterSize()).isEqualTo(1);
          assertThat(thread.globalX()).isZero();
          assertThat(thread.intValue(1)).isEqualTo(7);
        },
        memory,
        7,
        (_, _, _) -> {});
    assertThat(calls).hasValue(1);
  }

  @Test
  void atomicFunctions_giveWhatWasThere() {
    long memory = driver.memory().memAlloc(0, 64);
    launch(
        thread -> {
          thread.setFloat(memory, 1.5f);
          assertThat(thread.atomicAdd(memory, 2.25f)).isEqualTo(1.5f);
          assertThat(thread.getFloat(memory)).isEqualTo(3.75f);
          thread.setInt(memory, 5);
          assertThat(thread.atomicAdd(memory, 2)).isEqualTo(5);
          assertThat(thread.atomicCas(memory, 6, 8)).isEqualTo(7);
          assertThat(thread.atomicCas(memory, 7, 9)).isEqualTo(7);
          assertThat(thread.getInt(memory)).isEqualTo(9);
        },
        memory,
        0,
        (_, _, _) -> {});
  }

  @Test
  void bytesOfAnyAlignment_areReadAndWritten_acrossPagesOfManagedMemory() {
    int bytes = (4 << 20) + 5;
    for (long memory :
        new long[] {
          driver.memory().memAlloc(0, bytes + 8),
          driver.memory().memAllocManaged(0, bytes + 8, 1).address()
        }) {
      byte[] written = new byte[bytes];
      for (int i = 0; i < bytes; i++) {
        written[i] = (byte) (i * 31 >> 3);
      }
      byte[] read = new byte[bytes];
      launch(
          thread -> {
            thread.setBytes(thread.pointer(0) + 3, MemorySegment.ofArray(written));
            thread.getBytes(thread.pointer(0) + 3, MemorySegment.ofArray(read));
          },
          memory,
          0,
          (_, _, _) -> {});
      assertThat(read).isEqualTo(written);
      MemorySegment host = Arena.ofAuto().allocate(bytes);
      driver.transfers().memcpyDtoHAsync(0, host, memory + 3, 0);
      driver.streams().streamSynchronize(0, 0);
      assertThat(host.toArray(JAVA_BYTE)).isEqualTo(written);
    }
  }

  @Test
  void watcher_isToldOfEachByteOnce_inAlignedPieces() {
    long memory = driver.memory().memAlloc(0, 256);
    BitSet read = new BitSet();
    BitSet written = new BitSet();
    launch(
        thread -> {
          thread.getBytes(thread.pointer(0) + 5, MemorySegment.ofArray(new byte[50]));
          thread.setBytes(thread.pointer(0) + 99, MemorySegment.ofArray(new byte[2]));
        },
        memory,
        0,
        (address, bytes, touch) -> {
          assertThat(address % bytes).isZero();
          assertThat(bytes).isIn(1, 4, 8);
          BitSet set = touch == Touch.READ ? read : written;
          int first = (int) (address - memory);
          assertThat(set.get(first, first + bytes).cardinality()).isZero();
          set.set(first, first + bytes);
        });
    assertThat(read.nextSetBit(0)).isEqualTo(5);
    assertThat(read.nextClearBit(5)).isEqualTo(55);
    assertThat(read.cardinality()).isEqualTo(50);
    assertThat(written.stream()).containsExactly(99, 100);
  }

  @Test
  void bytesBeyondTheMemory_failTheLaunch() {
    long memory = driver.memory().memAlloc(0, 64);
    assertThatThrownBy(() ->
            launch(
                thread -> thread.getBytes(thread.pointer(0), MemorySegment.ofArray(new byte[1000])),
                memory,
                0,
                (_, _, _) -> {}))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.ILLEGAL_ADDRESS));
  }
}
