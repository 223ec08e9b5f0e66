package io.cuvette.instrument;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.internal.report.CallText;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * The resources whose release an injected fault refused and that were not released since.
 * Thread-safe.
 */
final class RefusedFrees {
  private static final String UNMAP = "memUnmap";

  private record Resource(String method, Object handle) {}

  private record Call(Method method, List<Object> arguments) {}

  private final Map<Resource, Call> refused = new ConcurrentHashMap<>();

  /** Notes a call that was made to fail, if it is one that frees. */
  void refused(Method method, Object[] arguments) {
    Resource resource = resource(method, arguments);
    if (resource != null) {
      forgetInside(method, arguments);
      refused.put(resource, new Call(method, List.of(arguments)));
    }
  }

  /** Notes a call that worked: what it freed is no longer owed. */
  void worked(Method method, Object[] arguments) {
    Resource resource = resource(method, arguments);
    if (resource != null) {
      forgetInside(method, arguments);
      refused.remove(resource);
    }
  }

  /** One call unmaps what several others were to unmap. */
  private void forgetInside(Method method, Object[] arguments) {
    if (method.getName().equals(UNMAP)) {
      long from = (Long) arguments[0];
      long to = from + (Long) arguments[1];
      refused
          .values()
          .removeIf(call ->
              call.method.getName().equals(UNMAP)
                  && from <= (Long) call.arguments.get(0)
                  && (Long) call.arguments.get(0) + (Long) call.arguments.get(1) <= to);
    }
  }

  /** Makes the refused calls on the driver itself and gives them as text. */
  List<String> retry(CudaDriver driver) {
    List<String> freed = new ArrayList<>();
    // The end of a stream ends its capture, beside which nothing can be waited for.
    retry(driver, "streamDestroy", freed);
    if (!refused.isEmpty()) {
      await(driver);
    }
    // Addresses can be given back once nothing is mapped there.
    retry(driver, UNMAP, freed);
    retry(driver, "", freed);
    return freed;
  }

  private void retry(CudaDriver driver, String name, List<String> freed) {
    for (Call call : refused.values()) {
      if (call.method.getName().startsWith(name)) {
        forward(driver, call);
        worked(call.method, call.arguments.toArray());
        freed.add(CallText.of(call.method, call.arguments.toArray()));
      }
    }
  }

  /** Queued work may use what is freed now, and another device's does not hold the free up. */
  private static void await(CudaDriver driver) {
    for (int device = 0; device < driver.devices().deviceGetCount(); device++) {
      driver.devices().ctxSynchronize(device);
    }
  }

  private static void forward(CudaDriver driver, Call call) {
    try {
      if (call.method.getName().equals("memFreeAsync")) {
        unlessDone(() ->
            driver.memory().memFree((Integer) call.arguments.get(0), (Long) call.arguments.get(1)));
      } else if (call.method.getName().equals(UNMAP)) {
        unlessDone(() ->
            driver.virtual().memUnmap((Long) call.arguments.get(0), (Long) call.arguments.get(1)));
      } else {
        DriverProxy.forward(driver, call.method, call.arguments.toArray());
      }
    } catch (RuntimeException | Error e) {
      throw e;
    } catch (Throwable e) { // declared by reflection, thrown by no call of a driver
      throw new IllegalStateException("checked exception from " + call.method, e);
    }
  }

  /**
   * The stream may be gone; what a node of a graph allocates is there after a launch only; a part
   * may have been unmapped since.
   */
  private static void unlessDone(Runnable call) {
    try {
      call.run();
    } catch (CudaException e) {
      if (e.status() != CudaStatus.INVALID_VALUE) {
        throw e;
      }
    }
  }

  private static @Nullable Resource resource(Method method, Object[] arguments) {
    String name = method.getName();
    return switch (name) {
      // One block, whichever of the two frees it.
      case "memFree", "memFreeAsync" -> new Resource("memFree", arguments[1]);
      case "memFreeHost",
          "memHostUnregister",
          "streamDestroy",
          "eventDestroy",
          "ipcCloseMemHandle" ->
          new Resource(name, arguments[1]);
      case "graphDestroy",
          "graphExecDestroy",
          "memPoolDestroy",
          "libraryUnload",
          "memRelease",
          "memUnmap",
          "memAddressFree" ->
          new Resource(name, arguments[0]);
      case "callFree", "mathHandleDestroy" -> new Resource(name, arguments[2]);
      default -> null;
    };
  }
}
