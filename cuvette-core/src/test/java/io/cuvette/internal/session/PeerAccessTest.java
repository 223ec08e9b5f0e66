package io.cuvette.internal.session;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What is asked of the driver for access to another device's memory, and what is known of it. */
class PeerAccessTest {
  private final SimulatedDriver simulator =
      SimulatedDriver.open(SimulatedOptions.parse("devices=2,peers=all"));
  private final List<String> asked = new ArrayList<>();
  private final CudaDriver driver =
      DriverProxy.of((method, arguments) -> {
        asked.add(method.getName());
        return DriverProxy.forward(simulator, method, arguments);
      });
  private final PeerAccess peers = new PeerAccess(driver, 2);

  @AfterEach
  void close() {
    simulator.close();
  }

  @Test
  void accessForCopies_isAskedForOnce() {
    peers.prepareCopy(0, 1);
    peers.prepareCopy(0, 1);
    assertThat(asked).containsExactly("deviceCanAccessPeer", "ctxEnablePeerAccess");
    assertThat(peers.isEnabled(0, 1)).isTrue();
    assertThat(peers.isEnabled(1, 0)).isFalse();
  }

  /** Kernels do not read there any more, nor does a copy change that. */
  @Test
  void accessThatWasTakenBack_isNone_andNoCopyAsksForIt() {
    peers.enable(0, 1);
    peers.disable(0, 1);
    assertThat(peers.isEnabled(0, 1)).isFalse();
    asked.clear();
    peers.prepareCopy(0, 1);
    assertThat(asked).isEmpty();
    assertThat(peers.isEnabled(0, 1)).isFalse();
  }
}
