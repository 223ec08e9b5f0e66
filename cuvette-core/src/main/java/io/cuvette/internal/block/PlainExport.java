package io.cuvette.internal.block;

import io.cuvette.BufferDescriptor;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PointerAttribute;
import io.cuvette.internal.session.Device;

/** Exports memory that no pool of the driver knows. Stateless. */
public final class PlainExport {
  private PlainExport() {}

  /**
   * A part of a plain allocation, as the driver knows it: the handle stands for all of it.
   *
   * @param address inside the allocation
   */
  public static BufferDescriptor plain(Memory part, long address) {
    Device device = part.on();
    if (!part.isOfDevice()) {
      throw cannot(part, "it is host or managed memory without a pool of the driver");
    }
    if (ask(device, PointerAttribute.IS_LEGACY_IPC_CAPABLE, address) == 0) {
      throw cannot(part, "the driver says that it cannot be exported");
    }
    long start = ask(device, PointerAttribute.RANGE_START, address);
    if (start == 0) {
      throw cannot(part, "the driver does not say where its allocation begins");
    }
    byte[] handle = device.ask(driver -> driver.sharing().ipcGetMemHandle(device.id(), start));
    return new BufferDescriptor(
        BufferDescriptor.Kind.PLAIN,
        address - start,
        part.byteSize(),
        device.session().process(),
        device.uuid(),
        handle);
  }

  private static long ask(Device device, int attribute, long address) {
    try {
      return Addresses.attribute(device, attribute, address);
    } catch (CudaException e) {
      if (e.status() == CudaStatus.INVALID_VALUE || e.status() == CudaStatus.NOT_SUPPORTED) {
        return 0; // not memory of CUDA
      }
      throw e;
    }
  }

  /** The refusal to share a buffer, with what can be shared. */
  public static IllegalStateException cannot(Memory buffer, String why) {
    return new IllegalStateException(
        "%s cannot be shared between processes: %s (expected: memory of a DeviceMemoryResource or"
                .formatted(buffer, why)
            + " PinnedMemoryResource with ipcEnabled, device memory of MemoryResource.direct(), or"
            + " pages by ElasticMemoryPool.export)");
  }
}
