package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.graph.OpenGraphExec;
import java.lang.ref.WeakReference;
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

  private static void checkForgotten(WeakReference<Object> closed) {
    for (int i = 0; i < 5 && !closed.refersTo(null); i++) {
      System.gc();
    }
    assertThat(closed.refersTo(null)).isTrue();
  }
}
