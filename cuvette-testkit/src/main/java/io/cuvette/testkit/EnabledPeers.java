package io.cuvette.testkit;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;

/**
 * Peer access that is enabled. It belongs to the contexts, which outlive the driver that enabled it
 * as long as anybody retains them. Stateless.
 */
final class EnabledPeers {
  private EnabledPeers() {}

  /** Takes back the access of every device to every other. */
  static void takeBack(CudaDriver driver) {
    int devices = driver.devices().deviceGetCount();
    for (int device = 0; device < devices; device++) {
      for (int peer = 0; peer < devices; peer++) {
        if (device != peer && driver.devices().deviceCanAccessPeer(device, peer)) {
          takeBack(driver, device, peer);
        }
      }
    }
  }

  private static void takeBack(CudaDriver driver, int device, int peer) {
    try {
      driver.devices().ctxDisablePeerAccess(device, peer);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.PEER_ACCESS_NOT_ENABLED) {
        throw e;
      }
    }
  }
}
