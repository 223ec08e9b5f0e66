package io.cuvette.sim.internal.share;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemLocationType;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.queue.SimDevice;
import java.util.List;
import java.util.UUID;

/**
 * Where shared memory is, or of which device a shared event is. Immutable.
 *
 * @param uuid the identity of the device; all 0 for memory of the host
 * @param locationType CUmemLocationType
 * @param locationId the device or node
 */
public record SharedPlace(UUID uuid, int locationType, int locationId) {
  private static final UUID NO_DEVICE = new UUID(0, 0);

  public static SharedPlace of(SimDevice device) {
    return new SharedPlace(device.uuid(), MemLocationType.DEVICE, device.index);
  }

  public static SharedPlace ofHost(PoolKind kind) {
    return new SharedPlace(NO_DEVICE, kind.locationType(), kind.locationId());
  }

  public boolean isHost() {
    return uuid.equals(NO_DEVICE);
  }

  /** The device among those of this process, or INVALID_DEVICE. */
  public SimDevice device(List<SimDevice> devices) {
    for (SimDevice device : devices) {
      if (device.uuid().equals(uuid)) {
        return device;
      }
    }
    throw new SimRefusal(
        CudaStatus.INVALID_DEVICE,
        "shared by device %d, %s (expected: one of the %d of this process)"
            .formatted(locationId, uuid, devices.size()));
  }
}
