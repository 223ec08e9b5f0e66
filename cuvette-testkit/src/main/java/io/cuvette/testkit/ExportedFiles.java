package io.cuvette.testkit;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.IpcCalls;
import io.cuvette.driver.VirtualCalls;
import io.cuvette.instrument.ForwardingDriver;
import io.cuvette.instrument.ForwardingIpc;
import io.cuvette.instrument.ForwardingVirtual;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The descriptors by which simulated memory was exported, and where. Whoever has one closes it, of
 * which no driver hears: the system knows whether it is open. Thread-safe.
 */
final class ExportedFiles {
  private final Map<Integer, Export> exports = new ConcurrentHashMap<>();

  private record Export(Object file, Throwable site) {}

  /** A driver whose exports are noted. */
  ForwardingDriver over(CudaDriver driver) {
    return new ForwardingDriver(driver) {
      private final IpcCalls sharing = over(driver.sharing());
      private final VirtualCalls virtual = over(driver.virtual());

      @Override
      public IpcCalls sharing() {
        return sharing;
      }

      @Override
      public VirtualCalls virtual() {
        return virtual;
      }
    };
  }

  /** Calls that export pools. */
  ForwardingIpc over(IpcCalls calls) {
    return new ForwardingIpc(calls) {
      @Override
      public int memPoolExportToShareableHandle(long pool) {
        return exported(
            super.memPoolExportToShareableHandle(pool), "memPoolExportToShareableHandle");
      }
    };
  }

  /** Calls that export memory without an address. */
  ForwardingVirtual over(VirtualCalls calls) {
    return new ForwardingVirtual(calls) {
      @Override
      public int memExportToShareableHandle(long handle) {
        return exported(super.memExportToShareableHandle(handle), "memExportToShareableHandle");
      }
    };
  }

  private int exported(int descriptor, String call) {
    Object file = file(descriptor);
    if (file != null) {
      String text = "descriptor %d of %s".formatted(descriptor, call);
      exports.put(descriptor, new Export(file, new Throwable(text)));
    }
    return descriptor;
  }

  /** Where those were exported that are open. */
  List<Throwable> open() {
    return exports.entrySet().stream()
        .filter(each -> Objects.equals(file(each.getKey()), each.getValue().file))
        .map(each -> each.getValue().site)
        .toList();
  }

  /** What distinguishes the file of a descriptor; null if it is of no simulated memory. */
  private static @Nullable Object file(int descriptor) {
    Path path = Path.of("/proc/self/fd", Integer.toString(descriptor));
    try {
      boolean isSimulated = Files.readSymbolicLink(path).toString().contains("cuvette-sim");
      return isSimulated ? Files.readAttributes(path, BasicFileAttributes.class).fileKey() : null;
    } catch (IOException e) {
      return null; // closed
    }
  }
}
