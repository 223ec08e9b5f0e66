package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.MathLibrary;
import io.cuvette.internal.graph.OpenGraphExec;
import io.cuvette.internal.interop.DriverHandle;
import io.cuvette.internal.interop.LibraryHandles;
import io.cuvette.internal.interop.Workspace;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A Cuda that lives long keeps nothing of what was closed. */
@Timeout(60)
class ClosedIsForgottenTest {

  /** What its end lets go of. */
  private static WeakReference<Object> closedGraph(CudaDevice device) {
    try (GraphDefinition definition = new GraphDefinition(device)) {
      return new WeakReference<>(definition.graph().core().retained());
    }
  }

  private static WeakReference<Object> closedExecutable(CudaDevice device) {
    try (GraphDefinition definition = new GraphDefinition(device)) {
      OpenGraphExec executable = OpenGraphExec.of(definition.graph().core(), GraphOptions.DEFAULTS);
      executable.close();
      return new WeakReference<>(executable.retained());
    }
  }

  @Test
  void closedGraphsAndExecutables_areNotKeptByTheirCuda() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      CudaDevice device = cuda.device(0);
      checkForgotten(closedGraph(device));
      checkForgotten(closedExecutable(device));
    }
  }

  /** One more than are kept for others. */
  private static WeakReference<Object> destroyedHandle(CudaDevice device) {
    LibraryHandles handles = device.cuda().engine().libraryHandles();
    List<DriverHandle> lent = new ArrayList<>();
    for (int i = 0; i < 9; i++) {
      lent.add(
          handles.lend(
              MathLibrary.CUSOLVER_SP,
              device.core(),
              device.nullStream().core(),
              0,
              (bytes, stream) -> new Workspace(0, 0, () -> {})));
    }
    lent.forEach(each -> handles.end(each, each).close());
    return new WeakReference<>(lent.getLast());
  }

  @Test
  void destroyedHandleOfALibrary_isNotKeptByItsCuda() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      checkForgotten(destroyedHandle(cuda.device(0)));
    }
  }

  /** Something that nothing but the pool knows. */
  private static WeakReference<Object> closedPool(Cuda cuda) {
    MemoryHook known = new MemoryHook() {};
    MemoryPool pool = new MemoryPool(cuda);
    Registration _ = pool.addHook(known);
    pool.allocate(1).close();
    pool.close();
    return new WeakReference<>(known);
  }

  @Test
  void closedPool_isNotKeptByItsCuda() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      checkForgotten(closedPool(cuda));
    }
  }

  @Test
  void memoryThatWentBackUpstream_isNotKeptByItsPool() {
    List<WeakReference<Object>> chunks = new ArrayList<>();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      PinnedAllocator upstream =
          bytes -> {
            PinnedBuffer chunk = cuda.directPinned().allocate(bytes);
            chunks.add(new WeakReference<>(chunk));
            return chunk;
          };
      PinnedPoolOptions options = PinnedPoolOptions.DEFAULTS.withUpstream(upstream);
      try (PinnedMemoryPool pool = new PinnedMemoryPool(cuda, options)) {
        pool.allocate(1).close();
        assertThat(pool.freeAllBlocks()).isPositive();
        checkForgotten(chunks.getFirst());
      }
    }
  }

  private static void checkForgotten(WeakReference<Object> closed) {
    for (int i = 0; i < 5 && !closed.refersTo(null); i++) {
      System.gc();
    }
    assertThat(closed.refersTo(null)).isTrue();
  }
}
