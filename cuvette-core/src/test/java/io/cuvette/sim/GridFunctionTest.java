package io.cuvette.sim;

import static io.cuvette.sim.SimulatedParameter.INT;
import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.AllocationProperties;
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
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Kernels whose Java function is called once for a grid, and that move bytes in pieces. */
class GridFunctionTest {
  private static final AtomicInteger NAMES = new AtomicInteger();
  private static final long PIECE = 2 << 20;
  private static final LaunchShape SHAPE =
      new LaunchShape(64, 2, 1, 128, 1, 1, 2, 1, 1, 0, false, false);

  private final SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse(""));

  @AfterEach
  void close() {
    driver.close();
  }

  private void launch(GridFunction function, long address, int number, LaunchWatcher watcher) {
    launch(driver, function, address, number, watcher);
  }

  private static void launch(
      SimulatedDriver driver,
      GridFunction function,
      long address,
      int number,
      LaunchWatcher watcher) {
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

  /** The largest of 8, 4 and 1 bytes that are aligned and there, one after the other. */
  private static List<Long> pieces(long from, long bytes) {
    List<Long> pieces = new ArrayList<>();
    long end = from + bytes;
    for (long at = from; at < end; ) {
      long size = 8;
      while (size > 1 && (at % size != 0 || at + size > end || size == 2)) {
        size /= 2;
      }
      pieces.add(at);
      pieces.add(size);
      at += size;
    }
    return pieces;
  }

  @Test
  void watcher_isToldOfThePieces_ofAnyRange() {
    long memory = driver.memory().memAlloc(0, 256);
    for (int start = 0; start < 9; start++) {
      for (int bytes = 1; bytes < 28; bytes++) {
        List<Long> told = new ArrayList<>();
        List<Touch> touches = new ArrayList<>();
        int from = start;
        byte[] values = new byte[bytes];
        launch(
            thread -> {
              thread.setBytes(thread.pointer(0) + from, MemorySegment.ofArray(values));
              thread.getBytes(thread.pointer(0) + from, MemorySegment.ofArray(values));
            },
            memory,
            0,
            (address, size, touch) -> {
              told.add(address);
              told.add((long) size);
              touches.add(touch);
            });
        List<Long> once = pieces(memory + from, bytes);
        List<Long> twice = new ArrayList<>(once);
        twice.addAll(once);
        assertThat(told).as("%d from %d", bytes, start).isEqualTo(twice);
        assertThat(touches.subList(0, touches.size() / 2)).containsOnly(Touch.WRITE);
        assertThat(touches.subList(touches.size() / 2, touches.size())).containsOnly(Touch.READ);
      }
    }
  }

  private record Use(int piece, boolean writes) {
    void of(KernelThread thread, long range) {
      long at = range + piece * PIECE + 8;
      if (writes) {
        thread.setInt(at, piece);
      } else {
        int _ = thread.getInt(at);
      }
    }
  }

  /** Access is that of each mapping, whichever was used before it. */
  @Test
  void mappings_areAccessedAsEachOfThemAllows_inAnyOrder() {
    int[] access = {1, 0, 3};
    List<Use> uses = new ArrayList<>();
    for (int piece = 0; piece < access.length; piece++) {
      uses.add(new Use(piece, false));
      uses.add(new Use(piece, true));
    }
    for (Use first : uses) {
      for (Use second : uses) {
        boolean isAllowed = true;
        for (Use each : List.of(first, second)) {
          isAllowed &= access[each.piece] >= (each.writes ? 3 : 1);
        }
        try (SimulatedDriver own = SimulatedDriver.open(SimulatedOptions.parse("memory=64MiB"))) {
          long range = own.virtual().memAddressReserve(access.length * PIECE, 0, 0);
          for (int i = 0; i < access.length; i++) {
            long at = range + i * PIECE;
            long handle = own.virtual().memCreate(PIECE, AllocationProperties.ofDevice(0, 0));
            own.virtual().memMap(at, PIECE, 0, handle);
            own.virtual().memSetAccess(at, PIECE, 1, new int[] {0}, access[i]);
          }
          GridFunction both =
              thread -> {
                first.of(thread, thread.pointer(0));
                second.of(thread, thread.pointer(0));
              };
          if (isAllowed) {
            launch(own, both, range, 0, (_, _, _) -> {});
          } else {
            assertThatThrownBy(() -> launch(own, both, range, 0, (_, _, _) -> {}))
                .as("%s, %s", first, second)
                .isInstanceOfSatisfying(
                    CudaException.class,
                    e -> assertThat(e.status()).isEqualTo(CudaStatus.ILLEGAL_ADDRESS));
          }
        }
      }
    }
  }
}
