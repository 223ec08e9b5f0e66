package io.cuvette.sim.internal.calls;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.KernelRegistry;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.kernel.ProductTwin;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.queue.SimDevice;
import io.cuvette.sim.internal.queue.SimStream;
import java.util.HashMap;
import java.util.Map;

/**
 * The calls about handles of libraries, which are counted and checked here. Products of matrices
 * are computed in Java, as a kernel; the libraries compute nothing else. Thread-safe.
 */
public final class SimMathCalls implements MathCalls {
  private static final int WORKSPACE_ALIGNMENT = 256;
  private static final LaunchShape ONE =
      new LaunchShape(1, 1, 1, 1, 1, 1, 1, 1, 1, 0, false, false);

  /** The live ones. */
  public final HandleTable<Handle> handles = new HandleTable<>(HandleKind.MATH_HANDLE, false);

  private final SimMachine machine;
  private final SimKernelCalls kernels;

  /** The stream of each handle that was bound. */
  private final Map<Long, Long> streams = new HashMap<>();

  /** The kernel that multiplies matrices; 0 before the first use. */
  private long product;

  /** What a handle is of. */
  public record Handle(MathLibrary library, SimDevice device) {}

  public SimMathCalls(SimMachine machine, SimKernelCalls kernels) {
    this.machine = machine;
    this.kernels = kernels;
  }

  @Override
  public String mathLibraryVersion(MathLibrary library) {
    return machine.call(() -> "simulated", () -> library + " version");
  }

  @Override
  public long mathHandleCreate(MathLibrary library, int device) {
    return machine.callLong(
        () -> handles.add(new Handle(library, machine.working(device))),
        () -> "%s create(device=%d)".formatted(library, device));
  }

  @Override
  public void mathHandleDestroy(MathLibrary library, int device, long handle) {
    machine.run(
        () -> {
          check(library, device, handle);
          handles.remove(handle);
          streams.remove(handle);
        },
        () -> call(library, "destroy", device, handle));
  }

  @Override
  public void mathHandleSetStream(MathLibrary library, int device, long handle, long stream) {
    machine.run(
        () -> {
          check(library, device, handle);
          machine.stream(machine.working(device), stream);
          streams.put(handle, stream);
        },
        () -> call(library, "setStream", device, handle) + " to stream 0x%x".formatted(stream));
  }

  @Override
  public void mathHandleSetWorkspace(int device, long handle, long address, long bytes) {
    machine.run(
        () -> {
          check(MathLibrary.CUBLAS, device, handle);
          if (address % WORKSPACE_ALIGNMENT != 0) {
            throw SimRefusal.invalidValue(
                "address: 0x%x (expected: a multiple of %d)"
                    .formatted(address, WORKSPACE_ALIGNMENT));
          }
        },
        () ->
            call(MathLibrary.CUBLAS, "setWorkspace", device, handle)
                + " to 0x%x, %d bytes".formatted(address, bytes));
  }

  @Override
  public void gemm(int device, long handle, MatrixProduct matrices, long c, long a, long b) {
    machine.run(
        () -> {
          check(MathLibrary.CUBLAS, device, handle);
          SimStream queue =
              machine.stream(machine.working(device), streams.getOrDefault(handle, 0L));
          if (product == 0) {
            KernelRegistry.add(ProductTwin.KERNEL.name(), ProductTwin.KERNEL);
            product = kernels.own(ProductTwin.KERNEL, ProductTwin.LAYOUT);
          }
          kernels.launchIn(queue, product, ONE, ProductTwin.parameters(matrices, c, a, b));
        },
        () ->
            call(MathLibrary.CUBLAS, "gemm", device, handle)
                + " of %s, c=0x%x, a=0x%x, b=0x%x".formatted(matrices, c, a, b));
  }

  private void check(MathLibrary library, int device, long handle) {
    Handle known = handles.get(handle);
    if (known.library() != library || known.device() != machine.working(device)) {
      throw new SimRefusal(
          CudaStatus.INVALID_HANDLE,
          "handle: 0x%x (expected: one of %s for device %d; this is one of %s for device %d)"
              .formatted(handle, library, device, known.library(), known.device().index));
    }
  }

  private static String call(MathLibrary library, String what, int device, long handle) {
    return "%s %s(handle=0x%x, device=%d)".formatted(library, what, handle, device);
  }
}
