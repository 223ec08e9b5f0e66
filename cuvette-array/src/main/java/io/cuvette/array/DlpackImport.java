package io.cuvette.array;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.PinnedBuffer;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/** Makes arrays of the memory of other libraries. Stateless. */
final class DlpackImport {
  private DlpackImport() {}

  /** Takes memory over, which {@code giveBack} returns; nothing has changed if it is refused. */
  static NdArray take(Cuda cuda, DlpackStructure.Content content, Runnable giveBack) {
    CudaDevice device = device(cuda, content);
    long bytes = bytes(content);
    boolean isOfHost = DlpackDevice.isOfHost(content.deviceType());
    if (content.data() % content.type().alignment() != 0) {
      throw new IllegalArgumentException(
          "data: 0x%x (expected: a multiple of %d for %s)"
              .formatted(content.data(), content.type().alignment(), content.type()));
    }
    if (isOfHost) {
      Buffer pinned =
          content.deviceType() == DlpackDevice.CUDA_HOST && bytes > 0
              ? pinned(device, content.data(), bytes, giveBack)
              : null;
      return host(cuda, content, (PinnedBuffer) pinned, bytes, giveBack);
    }
    if (bytes == 0) {
      CudaArray empty = array(device.wrap(0, 0, null), content, true);
      giveBack.run();
      return empty;
    }
    check(device, content, bytes);
    return array(device.adopt(content.data(), bytes, giveBack), content, true);
  }

  /** The bytes from the first element to the end of the last, none of which is before it. */
  private static long bytes(DlpackStructure.Content content) {
    Layout layout = content.layout();
    try {
      return layout.size() == 0 ? 0 : Math.multiplyExact(layout.end(), content.type().bytes());
    } catch (ArithmeticException e) {
      throw new IllegalArgumentException(
          "%s of %s (expected: at most 2^63-1 bytes)".formatted(layout, content.type()), e);
    }
  }

  private static CudaDevice device(Cuda cuda, DlpackStructure.Content content) {
    if (DlpackDevice.isOfHost(content.deviceType())) {
      return cuda.currentDevice();
    }
    int id = content.deviceId();
    if (id < 0 || id >= cuda.deviceCount()) {
      throw new IllegalArgumentException(
          "device: %d (expected: 0 to %d)".formatted(id, cuda.deviceCount() - 1));
    }
    return cuda.device(id);
  }

  /** That the driver knows the memory as what the tensor says. */
  private static void check(CudaDevice device, DlpackStructure.Content content, long bytes) {
    try (Buffer seen = device.wrap(content.data(), bytes, null)) {
      if (seen instanceof PinnedBuffer) {
        throw new IllegalArgumentException(
            "data: 0x%x is memory of the host (expected: of %s, as the tensor says)"
                .formatted(content.data(), device));
      }
    }
  }

  /** Null on a simulated device, whose memory the host sees at other addresses. */
  private static @Nullable Buffer pinned(
      CudaDevice device, long address, long bytes, Runnable giveBack) {
    if (device.cuda().isSimulated()) {
      return null;
    }
    try (Buffer seen = device.wrap(address, bytes, null)) {
      if (!(seen instanceof PinnedBuffer)) {
        throw new IllegalArgumentException(
            "data: 0x%x is no page-locked memory (expected: as the tensor says)"
                .formatted(address));
      }
    }
    return device.adopt(address, bytes, giveBack);
  }

  private static CudaArray array(Buffer buffer, DlpackStructure.Content content, boolean owner) {
    return new CudaArray(buffer, content.type(), content.layout(), owner, content.isReadOnly());
  }

  private static HostArray host(
      Cuda cuda,
      DlpackStructure.Content content,
      @Nullable PinnedBuffer pinned,
      long bytes,
      Runnable giveBack) {
    ImportedMemory imported = null;
    MemorySegment memory;
    if (pinned == null) {
      imported = new ImportedMemory(content.data(), bytes, giveBack);
      memory = imported.segment();
    } else {
      memory = pinned.segment();
    }
    return new HostArray(
        cuda,
        content.isReadOnly() ? memory.asReadOnly() : memory,
        pinned,
        imported,
        content.type(),
        content.layout(),
        true);
  }
}
