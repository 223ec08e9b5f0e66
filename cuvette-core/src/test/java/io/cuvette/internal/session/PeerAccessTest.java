package io.cuvette.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
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

  /** What the driver refuses, and how. */
  private String refused = "nothing";

  private CudaStatus status = CudaStatus.UNKNOWN;

  /** Whether device 1 reaches no memory of device 0. */
  private boolean oneWay;

  private final CudaDriver driver =
      DriverProxy.of((method, arguments) -> {
        asked.add(method.getName());
        if (method.getName().equals(refused)) {
          throw new CudaException(status, refused, "");
        }
        if (oneWay && method.getName().equals("deviceCanAccessPeer")) {
          return arguments[0].equals(0);
        }
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

  @Test
  void accessForCopies_isOfTheSourceToTheTarget() {
    oneWay = true;
    peers.prepareCopy(0, 1);
    peers.prepareCopy(1, 0);
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

  private void checkThrown(CudaStatus how, String call, Runnable step) {
    refused = call;
    status = how;
    assertThatExceptionOfType(CudaException.class)
        .isThrownBy(step::run)
        .satisfies(e -> assertThat(e.status()).isEqualTo(how));
    refused = "nothing";
  }

  private void checkInOrder(CudaStatus how, String call, Runnable step) {
    refused = call;
    status = how;
    step.run();
    refused = "nothing";
  }

  /** But for what says that it is as was wanted, or that the driver finds a way around. */
  @Test
  void refusalOfTheDriver_isThrown_andTheNextCallAsksAgain() {
    CudaStatus lost = CudaStatus.ECC_UNCORRECTABLE;
    checkThrown(lost, "ctxEnablePeerAccess", () -> peers.enable(0, 1));
    checkThrown(lost, "ctxEnablePeerAccess", () -> peers.prepareCopy(0, 1));
    checkThrown(lost, "deviceCanAccessPeer", () -> peers.prepareCopy(0, 1));
    checkThrown(CudaStatus.TOO_MANY_PEERS, "ctxEnablePeerAccess", () -> peers.enable(0, 1));
    assertThat(peers.isEnabled(0, 1)).isFalse();
    checkInOrder(
        CudaStatus.PEER_ACCESS_ALREADY_ENABLED, "ctxEnablePeerAccess", () -> peers.enable(0, 1));
    assertThat(peers.isEnabled(0, 1)).isTrue();
    checkThrown(lost, "ctxDisablePeerAccess", () -> peers.disable(0, 1));
    checkInOrder(
        CudaStatus.PEER_ACCESS_NOT_ENABLED, "ctxDisablePeerAccess", () -> peers.disable(0, 1));
    assertThat(peers.isEnabled(0, 1)).isFalse();
    checkInOrder(CudaStatus.TOO_MANY_PEERS, "ctxEnablePeerAccess", () -> peers.prepareCopy(1, 0));
    assertThat(peers.isEnabled(1, 0)).isFalse();
    asked.clear();
    peers.prepareCopy(1, 0);
    assertThat(asked).as("the driver copies through the host").isEmpty();
  }
}
