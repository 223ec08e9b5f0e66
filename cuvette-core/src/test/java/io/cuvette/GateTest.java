package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.internal.lifetime.Gate;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Who shuts a gate lets those inside out. */
@Timeout(60)
class GateTest {
  @Test
  void interruptedVirtualThreadsThatShut_leaveTheirCarriersToThoseInside() throws Exception {
    int many = 4 * Runtime.getRuntime().availableProcessors();
    List<Gate> gates = new ArrayList<>();
    List<Future<Boolean>> shutting = new ArrayList<>();
    CountDownLatch allInside = new CountDownLatch(1);
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      Future<?> leaving =
          threads.submit(() -> {
            allInside.await();
            gates.forEach(Gate::leave);
            return null;
          });
      for (int i = 0; i < many; i++) {
        Gate gate = new Gate();
        assertThat(gate.enter()).isTrue();
        gates.add(gate);
        shutting.add(
            threads.submit(() -> {
              Thread.currentThread().interrupt();
              gate.shut();
              return Thread.interrupted();
            }));
      }
      allInside.countDown();
      leaving.get();
      for (Future<Boolean> each : shutting) {
        assertThat(each.get()).as("still interrupted").isTrue();
      }
    }
    assertThat(gates).noneMatch(Gate::enter);
  }
}
