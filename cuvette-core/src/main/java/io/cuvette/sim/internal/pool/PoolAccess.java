package io.cuvette.sim.internal.pool;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemAccessFlags;
import io.cuvette.driver.MemLocationType;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.memory.BlockUse;
import io.cuvette.sim.internal.memory.DeviceBlock;
import io.cuvette.sim.internal.memory.HostBlock;
import io.cuvette.sim.internal.memory.SimBlock;
import io.cuvette.sim.internal.memory.SimPlace;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.share.PoolKind;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/** Which devices may touch the memory of a pool. Guarded by the driver's lock. */
public final class PoolAccess {

  private final PeerRule peers;
  private final PoolKind kind;
  private final int[] flags;

  /**
   * The owner alone may touch device memory, the host alone host memory, and every device managed
   * memory.
   */
  public PoolAccess(PeerRule peers, PoolKind kind) {
    this.peers = peers;
    this.kind = kind;
    this.flags = new int[peers.devices()];
    Arrays.fill(flags, kind.isManaged() ? MemAccessFlags.READ_WRITE : MemAccessFlags.NONE);
    if (kind.isDevice()) {
      flags[kind.locationId()] = MemAccessFlags.READ_WRITE;
    }
  }

  /**
   * Checks that a device may copy directly from one place to another: it can only touch device
   * memory whose pool lets it in, whatever is on the other side. Memory of the host needs no access
   * for that.
   *
   * @param target null if it is no memory of a device
   * @param source null if it is no memory of a device
   * @param bytes how many bytes are copied
   */
  public static void check(
      SimDevice device, @Nullable SimPlace target, @Nullable SimPlace source, long bytes) {
    if (target != null && !(target.block() instanceof HostBlock)) {
      check(device, target, bytes, MemAccessFlags.READ_WRITE);
    }
    if (source != null && !(source.block() instanceof HostBlock)) {
      check(device, source, bytes, MemAccessFlags.READ);
    }
  }

  /**
   * Checks that a device may fill a place: the copies of plain memory of another device go another
   * way where there is no peer access, and the fills have none.
   */
  public static void check(SimDevice device, SimPlace target, long bytes) {
    checkKernel(device, target, bytes, true);
  }

  /** Checks that a kernel of a device may read a place, or also write to it. */
  public static void checkKernel(SimDevice device, SimPlace place, long bytes, boolean writes) {
    check(device, place, bytes, writes ? MemAccessFlags.READ_WRITE : MemAccessFlags.READ);
    SimBlock block = place.block();
    boolean plain = block instanceof DeviceBlock && block.use() == null && !block.isImported();
    if (plain && block.device != device && !device.hasPeer(block.device)) {
      throw SimRefusal.invalidValue(
          "%s: device %d has no peer access to it".formatted(block, device.index));
    }
  }

  private static void check(SimDevice device, SimPlace place, long bytes, int needed) {
    BlockUse use = place.block().use();
    if (use != null) {
      int access = use.access(device, place.offset(), bytes);
      if ((access & needed) != needed) {
        throw SimRefusal.invalidValue(
            "%s: device %d has access %d to its %s (expected: %d)"
                .formatted(place.block(), device.index, access, use.kind(), needed));
      }
    }
  }

  public int of(SimDevice device) {
    return flags[device.index];
  }

  public int get(int locationType, int id) {
    return switch (locationType) {
      case MemLocationType.DEVICE -> flags[known(id)];
      case MemLocationType.HOST, MemLocationType.HOST_NUMA ->
          kind.isDevice() ? MemAccessFlags.NONE : MemAccessFlags.READ_WRITE;
      default -> throw badType(locationType);
    };
  }

  /**
   * Sets the access of all or, if one is refused, of none.
   *
   * @param access one for each place, or one for all
   */
  public void set(int locationType, int[] ids, int[] access) {
    if (access.length != 1 && access.length != ids.length) {
      throw SimRefusal.invalidValue(
          "access: %d flags for %d places (expected: 1 or %d)"
              .formatted(access.length, ids.length, ids.length));
    }
    int[] each = Arrays.copyOf(access, ids.length);
    if (access.length == 1) {
      Arrays.fill(each, access[0]);
    }
    for (int i = 0; i < ids.length; i++) {
      check(locationType, ids[i], each[i]);
    }
    if (locationType == MemLocationType.DEVICE) {
      for (int i = 0; i < ids.length; i++) {
        flags[ids[i]] = each[i];
      }
    }
  }

  private void check(int locationType, int id, int access) {
    if (access != MemAccessFlags.NONE
        && access != MemAccessFlags.READ
        && access != MemAccessFlags.READ_WRITE) {
      throw SimRefusal.invalidValue("access: %d (expected: 0, 1 or 3)".formatted(access));
    }
    switch (locationType) {
      case MemLocationType.DEVICE -> check(known(id), access);
      case MemLocationType.HOST, MemLocationType.HOST_NUMA -> checkHost(access);
      default -> throw badType(locationType);
    }
  }

  private int known(int id) {
    if (id < 0 || id >= flags.length) {
      throw new SimRefusal(
          CudaStatus.INVALID_DEVICE,
          "device: %d (expected: 0 to %d)".formatted(id, flags.length - 1));
    }
    return id;
  }

  private void check(int id, int access) {
    if (kind.isManaged()) {
      checkFixed("managed memory", access, MemAccessFlags.READ_WRITE);
    } else if (kind.isDevice() && id == kind.locationId()) {
      checkOwner(access);
    } else if (kind.isDevice()
        && access != MemAccessFlags.NONE
        && !peers.allows(id, kind.locationId())) {
      throw new SimRefusal(
          CudaStatus.INVALID_DEVICE,
          "device %d cannot reach memory of device %d".formatted(id, kind.locationId()));
    }
  }

  private void checkHost(int access) {
    if (kind.isDevice()) {
      checkFixed("the host, for device memory", access, MemAccessFlags.NONE);
    } else {
      checkFixed("the host", access, MemAccessFlags.READ_WRITE);
    }
  }

  private static void checkOwner(int access) {
    if (access != MemAccessFlags.READ_WRITE) {
      throw new SimRefusal(
          CudaStatus.INVALID_DEVICE,
          "access of the owner: %d (expected: %d, which cannot be changed)"
              .formatted(access, MemAccessFlags.READ_WRITE));
    }
  }

  private static void checkFixed(String whose, int access, int fixed) {
    if (access != fixed) {
      throw SimRefusal.invalidValue(
          "access of %s: %d (expected: %d, which cannot be changed)"
              .formatted(whose, access, fixed));
    }
  }

  private static SimRefusal badType(int locationType) {
    return SimRefusal.invalidValue(
        "location type: %d (expected: 1 device or 2 host)".formatted(locationType));
  }
}
