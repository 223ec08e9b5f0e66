package io.cuvette.internal.kernel;

import io.cuvette.internal.block.Memory;
import io.cuvette.internal.session.Device;

/** Checks that code of a device can reach memory of others. Stateless. */
final class DeviceAccess {
  private DeviceAccess() {}

  /** Checks that a device, which runs something, can reach memory. */
  static void check(Memory buffer, Device device, Object runs) {
    if (buffer.on() == device || !buffer.isOfDevice()) {
      return;
    }
    if (buffer.block().deniesAccess(device)) {
      throw new IllegalArgumentException(
          ("%s of %s (expected: memory that %s, which runs %s, has access to: its own, or of a pool"
                  + " that grants it)")
              .formatted(buffer, buffer.on(), device, runs));
    }
    if (buffer.block().isPlain()
        && !device.session().peers().isEnabled(device.id(), buffer.on().id())) {
      throw new IllegalArgumentException(
          "%s of %s (expected: memory of %s, which runs %s, or CudaDevice.enablePeerAccess first)"
              .formatted(buffer, buffer.on(), device, runs));
    }
  }
}
