package io.cuvette.internal.session;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;

/** Which device may address the memory of which other. Thread-safe. */
public final class PeerAccess {
  private final CudaDriver driver;

  /**
   * By device and peer: whether access was requested before a copy, so that it is requested once.
   */
  private final boolean[][] tried;

  /** By device and peer: whether the one may address the memory of the other, as is known here. */
  private final boolean[][] enabled;

  public PeerAccess(CudaDriver driver, int devices) {
    this.driver = driver;
    this.tried = new boolean[devices][devices];
    this.enabled = new boolean[devices][devices];
  }

  public boolean can(int device, int peer) {
    return device == peer || driver.devices().deviceCanAccessPeer(device, peer);
  }

  public void enable(int device, int peer) {
    try {
      driver.devices().ctxEnablePeerAccess(device, peer);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.PEER_ACCESS_ALREADY_ENABLED) {
        throw e;
      }
    }
    enabled[device][peer] = true;
  }

  /** Whether access was enabled here, by the user or for a copy. */
  public boolean isEnabled(int device, int peer) {
    return enabled[device][peer];
  }

  public void disable(int device, int peer) {
    tried[device][peer] = true; // a copy does not undo what the user wanted
    enabled[device][peer] = false;
    try {
      driver.devices().ctxDisablePeerAccess(device, peer);
    } catch (CudaException e) {
      if (e.status() != CudaStatus.PEER_ACCESS_NOT_ENABLED) {
        throw e;
      }
    }
  }

  /**
   * Before a copy: direct access if the devices can; without it the driver goes through the host.
   */
  public void prepareCopy(int source, int target) {
    if (!tried[source][target]) {
      try {
        if (can(source, target)) {
          enable(source, target);
        }
      } catch (CudaException e) {
        if (e.status() != CudaStatus.TOO_MANY_PEERS) { // then the driver copies through the host
          throw e;
        }
      }
      tried[source][target] = true;
    }
  }
}
