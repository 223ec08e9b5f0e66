package io.cuvette.sim.internal.calls;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MathCalls;
import io.cuvette.driver.MathLibrary;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.machine.SimMachine;
import io.cuvette.sim.internal.schedule.SimDevice;

/**
 * The calls about handles of libraries, which are counted and checked here; the libraries compute
 * nothing. Thread-safe.
 */
public final class SimMathCalls implements MathCalls {
  private static final int WORKSPACE_ALIGNMENT = 256;

  /** The live ones. */
  public final HandleTable<Handle> handles = new HandleTable<>(HandleKind.MATH_HANDLE, false);

  private final SimMachine machine;

  /** What a handle is of. */
  public record Handle(MathLibrary library, SimDevice device) {}

  public SimMathCalls(SimMachine machine) {
    this.machine = machine;
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
        },
        () -> call(library, "destroy", device, handle));
  }

  @Override
  public void mathHandleSetStream(MathLibrary library, int device, long handle, long stream) {
    machine.run(
        () -> {
          check(library, device, handle);
          machine.stream(machine.working(device), stream);
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
