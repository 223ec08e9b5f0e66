package io.cuvette.benchmarks;

import static org.lwjgl.cuda.CU.*;

import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import org.lwjgl.PointerBuffer;
import org.lwjgl.cuda.CU;
import org.lwjgl.system.Configuration;
import org.lwjgl.system.MemoryStack;
import org.lwjgl.system.MemoryUtil;

/**
 * The JVM's raw binding as an anchor: the driver's calls through LWJGL, out-parameters allocated
 * once, which is the best case of LWJGL. Single-threaded.
 */
final class LwjglDriverCalls {
  private static final int MIB = 1 << 20;
  private static final int COPY_BYTES = 256 * MIB;

  private final Lines lines = new Lines("lwjgl");
  private final PointerBuffer pointer = MemoryUtil.memAllocPointer(1);
  private long stream;
  private long event;

  private LwjglDriverCalls() {}

  /** Measures, or reports in one line why it cannot; true if it measured. */
  static boolean run() {
    // The driver alone is installed on many machines: libcuda.so without a version comes with the
    // toolkit.
    if (System.getProperty("os.name", "").startsWith("Linux")) {
      Configuration.CUDA_LIBRARY_NAME.set("libcuda.so.1");
    }
    LwjglDriverCalls calls = new LwjglDriverCalls();
    try {
      calls.open();
    } catch (LinkageError | IllegalStateException | NullPointerException e) {
      calls.lines.missing("the driver cannot be used: " + e);
      return false;
    }
    calls.driverCalls();
    calls.pairs();
    calls.copies();
    return true;
  }

  private void open() {
    try (MemoryStack stack = MemoryStack.stackPush()) {
      check(cuInit(0), "cuInit");
      IntBuffer device = stack.mallocInt(1);
      check(cuDeviceGet(device, 0), "cuDeviceGet");
      check(cuDevicePrimaryCtxRetain(pointer, device.get(0)), "cuDevicePrimaryCtxRetain");
      check(cuCtxSetCurrent(pointer.get(0)), "cuCtxSetCurrent");
      check(cuStreamCreate(pointer, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
      stream = pointer.get(0);
      check(cuEventCreate(pointer, CU_EVENT_DEFAULT), "cuEventCreate");
      event = pointer.get(0);
      keepPoolMemory(stack, device.get(0));
    }
  }

  /** As every caching pool does: the driver's pool gives nothing back between two allocations. */
  private void keepPoolMemory(MemoryStack stack, int device) {
    check(cuDeviceGetDefaultMemPool(pointer, device), "cuDeviceGetDefaultMemPool");
    LongBuffer threshold = stack.longs(-1L);
    int attribute = CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    check(
        cuMemPoolSetAttribute(pointer.get(0), attribute, MemoryUtil.memByteBuffer(threshold)),
        "cuMemPoolSetAttribute");
  }

  /** Each loop is written out: a shared one would add a call through an interface to each turn. */
  private void driverCalls() {
    measure("call-cuDriverGetVersion", 2_000_000, this::driverGetVersion);
    measure("call-cuCtxGetCurrent", 2_000_000, this::getCurrent);
    measure("call-cuStreamQuery", 500_000, this::streamQuery);
    measure("call-cuEventRecord", 100_000, this::eventRecord);
    check(cuStreamSynchronize(stream), "cuStreamSynchronize");
    measure("call-cuEventQuery", 500_000, this::eventQuery);
    measure("call-cuMemAlloc+cuMemFree-1MiB", 1_000, this::memAlloc);
  }

  private void driverGetVersion(int turns) {
    IntBuffer version = MemoryUtil.memAllocInt(1);
    for (int i = 0; i < turns; i++) {
      cuDriverGetVersion(version);
    }
    MemoryUtil.memFree(version);
  }

  private void getCurrent(int turns) {
    for (int i = 0; i < turns; i++) {
      cuCtxGetCurrent(pointer);
    }
  }

  private void streamQuery(int turns) {
    for (int i = 0; i < turns; i++) {
      cuStreamQuery(stream);
    }
  }

  private void eventRecord(int turns) {
    for (int i = 0; i < turns; i++) {
      cuEventRecord(event, stream);
    }
  }

  private void eventQuery(int turns) {
    for (int i = 0; i < turns; i++) {
      cuEventQuery(event);
    }
  }

  private void memAlloc(int turns) {
    for (int i = 0; i < turns; i++) {
      check(cuMemAlloc(pointer, MIB), "cuMemAlloc");
      cuMemFree(pointer.get(0));
    }
  }

  private void measure(String work, int turns, BestOf.Loop loop) {
    lines.figure(work, "nsPerCall", BestOf.nanosPerTurn(turns, 5, loop));
  }

  private void pairs() {
    double async =
        BestOf.nanosPerTurn(
            50_000,
            5,
            turns -> {
              for (int i = 0; i < turns; i++) {
                cuMemAllocAsync(pointer, MIB, stream);
                cuMemFreeAsync(pointer.get(0), stream);
              }
            });
    lines.figure("async-1MiB", "nsPerPair", async);
    double pinned =
        BestOf.nanosPerTurn(
            100,
            3,
            turns -> {
              for (int i = 0; i < turns; i++) {
                cuMemHostAlloc(pointer, MIB, 0);
                CU.ncuMemFreeHost(pointer.get(0));
              }
            });
    lines.figure("pinned-1MiB", "nsPerPair", pinned);
  }

  /** One call that returns its status. */
  @FunctionalInterface
  private interface Call {
    int status();
  }

  private void copies() {
    check(cuMemAlloc(pointer, COPY_BYTES), "cuMemAlloc");
    long device = pointer.get(0);
    check(cuMemHostAlloc(pointer, COPY_BYTES, 0), "cuMemHostAlloc");
    ByteBuffer host = MemoryUtil.memByteBuffer(pointer.get(0), COPY_BYTES);
    copy("transfer-pinned-h2d-256MiB", () -> cuMemcpyHtoDAsync(device, host, stream));
    copy("transfer-pinned-d2h-256MiB", () -> cuMemcpyDtoHAsync(host, device, stream));
    check(CU.ncuMemFreeHost(MemoryUtil.memAddress(host)), "cuMemFreeHost");
    check(cuMemFree(device), "cuMemFree");
  }

  private void copy(String work, Call start) {
    double nanos =
        BestOf.nanosPerTurn(
            1,
            10,
            turns -> {
              check(start.status(), work);
              check(cuStreamSynchronize(stream), "cuStreamSynchronize");
            });
    lines.figure(work, "gigabytesPerSecond", COPY_BYTES / nanos);
  }

  private static void check(int status, String call) {
    if (status != CUDA_SUCCESS) {
      throw new IllegalStateException(call + ": status " + status);
    }
  }
}
