package io.cuvette.examples;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.PoolOptions;
import io.cuvette.Scope;

/** Hard limits on what a pool holds, in bytes, as a fraction, and for each device. Stateless. */
public final class LimitsExample {
  private static final long MIB = 1L << 20;
  private static final long GIB = 1L << 30;

  private LimitsExample() {}

  /** Runs the example. */
  public static void run(Cuda cuda, Output out) {
    out.say("The environment sets the first limit: CUVETTE_GPU_MEMORY_LIMIT=8GiB or 50%;");
    out.say("CUPY_GPU_MEMORY_LIMIT is honoured too. Now for the default pool:");
    out.show("limit()", cuda.defaultMemoryPool().limit());
    texts(out);
    try (MemoryPool pool = new MemoryPool(cuda, PoolOptions.DEFAULTS.withLimit(bytes(GIB)))) {
      out.check("limitBytes()", pool.limitBytes(), GIB);
      fraction(cuda, pool, out);
      outOfMemory(pool, out);
      perDevice(cuda, pool, out);
    }
  }

  private static void texts(Output out) {
    String name = "CUVETTE_GPU_MEMORY_LIMIT";
    long device = 2 * GIB;
    out.say("What texts mean on a device of 2 GiB:");
    out.check("1073741824", MemoryLimit.parse(name, "1073741824").bytesOf(device), GIB);
    out.check("1GiB", MemoryLimit.parse(name, "1GiB").bytesOf(device), GIB);
    out.check("50%", MemoryLimit.parse(name, "50%").bytesOf(device), GIB);
    out.check("0", MemoryLimit.parse(name, "0"), MemoryLimit.none());
  }

  private static void fraction(Cuda cuda, MemoryPool pool, Output out) {
    CudaDevice device = cuda.currentDevice();
    pool.setLimit(MemoryLimit.ofFraction(0.5));
    out.check("half of the device", pool.limitBytes(), device.totalBytes() / 2);
    pool.setLimit(MemoryLimit.none());
    out.check("no limit", pool.limitBytes(), Long.MAX_VALUE);
  }

  private static void outOfMemory(MemoryPool pool, Output out) {
    pool.setLimit(bytes(3 * MIB));
    try (Buffer first = pool.allocate(2 * MIB)) {
      out.say("With 2 of 3 MiB in use, 2 more MiB are refused:");
      try (Buffer second = pool.allocate(2 * MIB)) {
        throw new WrongResultException("%s beside %s, over the limit".formatted(second, first));
      } catch (OutOfDeviceMemoryException e) {
        out.say(String.valueOf(e.getMessage()));
        out.check("requested", e.requestedBytes(), 2 * MIB);
        out.check("limit", e.details().limitBytes(), 3 * MIB);
      }
    }
    out.say("Cached blocks are released first to make room within the limit:");
    pool.allocate(3 * MIB).close();
    out.check("totalBytes()", pool.totalBytes(), 3 * MIB);
  }

  private static void perDevice(Cuda cuda, MemoryPool pool, Output out) {
    out.say("Each device has its own limit.");
    for (CudaDevice device : cuda.devices()) {
      try (Scope _ = device.use()) {
        pool.setLimit(bytes((device.id() + 1) * GIB));
      }
    }
    for (CudaDevice device : cuda.devices()) {
      long expected = (device.id() + 1) * GIB;
      out.check("limit of " + device, pool.limit(device), bytes(expected));
    }
  }

  private static MemoryLimit bytes(long bytes) {
    return MemoryLimit.ofBytes(bytes);
  }
}
