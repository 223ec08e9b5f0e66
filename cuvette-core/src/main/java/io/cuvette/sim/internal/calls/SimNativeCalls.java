package io.cuvette.sim.internal.calls;

import io.cuvette.driver.NativeCalls;
import io.cuvette.sim.FreeFunction;
import io.cuvette.sim.MallocFunction;
import io.cuvette.sim.internal.base.HandleKind;
import io.cuvette.sim.internal.base.HandleTable;
import io.cuvette.sim.internal.base.SimRefusal;
import io.cuvette.sim.internal.machine.SimMachine;
import org.jspecify.annotations.Nullable;

/** The calls of C functions, which here are functions of Java. Thread-safe. */
public final class SimNativeCalls implements NativeCalls {
  public final HandleTable<MallocFunction> mallocs =
      new HandleTable<>(HandleKind.MALLOC_FUNCTION, false);
  public final HandleTable<FreeFunction> frees = new HandleTable<>(HandleKind.FREE_FUNCTION, false);
  private final SimMachine machine;

  public SimNativeCalls(SimMachine machine) {
    this.machine = machine;
  }

  @Override
  public long callMalloc(long function, long parameter, long bytes, int device) {
    MallocFunction malloc =
        machine.call(
            () -> {
              machine.working(device);
              return function(mallocs.find(function), "malloc", function);
            },
            () ->
                "callMalloc(function=0x%x, parameter=0x%x, bytes=%d, device=%d)"
                    .formatted(function, parameter, bytes, device));
    // Without the lock: the function may call the driver.
    return malloc.malloc(parameter, bytes, device);
  }

  @Override
  public void callFree(long function, long parameter, long address, int device) {
    FreeFunction free =
        machine.call(
            () -> {
              machine.working(device);
              return function(frees.find(function), "free", function);
            },
            () ->
                "callFree(function=0x%x, parameter=0x%x, address=0x%x, device=%d)"
                    .formatted(function, parameter, address, device));
    free.free(parameter, address, device);
  }

  private static <T> T function(@Nullable T found, String kind, long address) {
    if (found == null) {
      throw SimRefusal.invalidValue(
          "function: 0x%x (expected: a registered %s function)".formatted(address, kind));
    }
    return found;
  }
}
