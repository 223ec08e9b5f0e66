package io.cuvette.internal.driverpool;

import io.cuvette.BufferDescriptor;
import io.cuvette.DeviceAttribute;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.channel.Descriptors;
import io.cuvette.internal.channel.PoolHandle;
import io.cuvette.internal.session.Device;
import java.util.UUID;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * What makes the pool of a resource usable by several processes: the handle that imports it, which
 * belongs to the resource. Immutable.
 *
 * @param kind what the pool's buffers are
 * @param handle of the pool
 * @param mapped whether the pool is another process's
 */
public record PoolExport(BufferDescriptor.Kind kind, PoolHandle handle, boolean mapped) {

  /** A new pool that other processes can import, with an identity of its own. */
  public static PoolSource create(
      DriverPools pools, PoolProperties properties, BufferDescriptor.Kind kind) {
    DriverPool pool = MadePool.createKeeping(pools, properties);
    try {
      DescriptorCalls calls = Descriptors.require("ipcEnabled");
      return new PoolSource(pool, new PoolExport(kind, exported(calls, pool), false));
    } catch (RuntimeException | Error e) {
      pool.abandon(e);
      throw e;
    }
  }

  /** The handle of a new pool; no child process inherits it, whatever the driver does. */
  private static PoolHandle exported(DescriptorCalls calls, DriverPool pool) {
    UUID uuid = UUID.randomUUID();
    int descriptor =
        (int) pool.ask(driver -> driver.sharing().memPoolExportToShareableHandle(pool.handle()));
    try {
      return PoolHandle.own(calls, calls.duplicate(descriptor), uuid);
    } finally {
      calls.close(descriptor);
    }
  }

  /**
   * Something that is made of a pool of another process.
   *
   * @param home the device the memory is of, null if it is of none
   * @param own the handle, which belongs to the result
   */
  public static <R> R imported(
      DriverPools pools,
      @Nullable Device home,
      PoolHandle own,
      BufferDescriptor.Kind kind,
      Function<PoolSource, R> maker) {
    try {
      DriverPool pool = importPool(pools, own, home);
      try {
        return maker.apply(new PoolSource(pool, new PoolExport(kind, own, true)));
      } catch (RuntimeException | Error e) {
        Failures.runAfter(e, pool::close);
        throw e;
      }
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, own::close);
      throw e;
    }
  }

  /** A failure of making or exporting a pool, with what the device supports of such pools. */
  public static CudaException explained(
      CudaException e, Device device, DeviceAttribute attribute, String instead) {
    return switch (e.status()) {
      case NOT_SUPPORTED, NOT_PERMITTED, CALL_REQUIRES_NEWER_DRIVER, INVALID_VALUE ->
          e.explained(
              "this driver or machine cannot share such a pool between processes (%s of %s is %s);"
                      .formatted(attribute, device, value(device, attribute))
                  + " "
                  + instead);
      default -> e;
    };
  }

  private static String value(Device device, DeviceAttribute attribute) {
    try {
      return Integer.toString(device.attribute(attribute));
    } catch (CudaException e) {
      return "unknown to the driver";
    }
  }

  private static DriverPool importPool(
      DriverPools pools, PoolHandle handle, @Nullable Device home) {
    PoolOrigin origin = PoolOrigin.of(handle, pools);
    try {
      return importPool(pools, handle, home, origin);
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, origin::close);
      throw e;
    }
  }

  private static DriverPool importPool(
      DriverPools pools, PoolHandle handle, @Nullable Device home, PoolOrigin origin) {
    try {
      return ImportedPool.imported(pools, home, origin);
    } catch (CudaException e) {
      if (e.status() == CudaStatus.OPERATING_SYSTEM || e.status() == CudaStatus.OUT_OF_MEMORY) {
        throw e; // which says nothing about the descriptor
      }
      String why =
          switch (e.status()) {
            case ALREADY_MAPPED ->
                " is of a pool that this process has imported, or made, and not given back yet: a"
                    + " closed resource keeps its pool until its last buffer is freed";
            case INVALID_DEVICE -> " is of a pool whose device this process does not see";
            default ->
                " gives no memory pool; it must come from the allocationHandle() of an IPC-enabled"
                    + " resource of this machine";
          };
      throw e.explained(handle + why);
    }
  }
}
