package io.cuvette.testkit.races;

import io.cuvette.driver.CudaDriver;
import io.cuvette.instrument.DriverProxy;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Counts what a driver has given and not got back, and keeps threads inside a call. A Cuda over it
 * ends its part alone: the driver goes on for the next. Thread-safe.
 */
final class CountedDriver {
  private static final Map<String, String> GIVES =
      Map.ofEntries(
          Map.entry("memAlloc", "memory"),
          Map.entry("memAllocManaged", "memory"),
          Map.entry("memAllocAsync", "memory"),
          Map.entry("memAllocFromPoolAsync", "memory"),
          Map.entry("memHostAlloc", "host memory"),
          Map.entry("streamCreateWithPriority", "streams"),
          Map.entry("eventCreate", "events"),
          Map.entry("memPoolCreate", "pools"),
          Map.entry("memPoolImportFromShareableHandle", "pools"),
          Map.entry("memPoolImportPointer", "memory"),
          Map.entry("ipcOpenMemHandle", "mappings"),
          Map.entry("ipcOpenEventHandle", "events"));

  private static final Map<String, String> TAKES =
      Map.of(
          "memFree", "memory",
          "memFreeAsync", "memory",
          "memFreeHost", "host memory",
          "streamDestroy", "streams",
          "eventDestroy", "events",
          "memPoolDestroy", "pools",
          "ipcCloseMemHandle", "mappings");

  private final CudaDriver delegate;
  private final Map<String, AtomicInteger> live = new ConcurrentHashMap<>();
  private final Set<Object> ofGraphs = ConcurrentHashMap.newKeySet();
  private final UsedHandles handles = new UsedHandles();
  private volatile Stop stop = () -> {};

  CountedDriver(CudaDriver delegate) {
    this.delegate = delegate;
  }

  /** A driver for one Cuda, which ends when that does. */
  CudaDriver open() {
    AtomicBoolean closed = new AtomicBoolean();
    return DriverProxy.of((method, arguments) -> {
      if (method.getName().equals("close")) {
        closed.set(true);
        return null;
      }
      stop.beforeCall();
      if (closed.get() && DriverProxy.isCall(method)) {
        throw new AssertionError("after the end of the Cuda: " + method.getName());
      }
      return call(method, arguments);
    });
  }

  /** The driver as another library of the process would call it: nothing is counted. */
  CudaDriver theirs() {
    return delegate;
  }

  /** What is live now, without what is not. */
  Map<String, Integer> live() {
    Map<String, Integer> now = new TreeMap<>();
    live.forEach((what, count) -> {
      if (count.get() != 0) {
        now.put(what, count.get());
      }
    });
    return now;
  }

  /** Calls about what was gone, or was in use when it was to go. */
  List<AssertionError> misused() {
    return handles.findings();
  }

  /** From now on calls stop where that says so. */
  void stopAt(Stop place) {
    stop = place;
  }

  private @Nullable Object call(Method method, Object[] arguments) throws Throwable {
    boolean isNode = isAllocationNode(method, arguments);
    Object result =
        handles.call(method, arguments, () -> DriverProxy.forward(delegate, method, arguments));
    if (isNode) {
      ofGraphs.add(result);
    } else if (!isOfGraph(method, arguments)) {
      if (GIVES.containsKey(method.getName()) && result != null) {
        ofGraphs.remove(result); // the address of a graph that is gone
      }
      count(GIVES.get(method.getName()), 1);
      count(TAKES.get(method.getName()), -1);
    }
    return result;
  }

  /** Whether a call adds memory to a graph: nobody has to free it. */
  private boolean isAllocationNode(Method method, Object[] arguments) {
    return method.getName().equals("memAllocAsync")
        && delegate.captures().streamIsCapturing((int) arguments[0], (long) arguments[2]) != 0;
  }

  private boolean isOfGraph(Method method, Object[] arguments) {
    return method.getName().startsWith("memFree") && ofGraphs.contains(arguments[1]);
  }

  private void count(@Nullable String what, int change) {
    if (what != null) {
      live.computeIfAbsent(what, _ -> new AtomicInteger()).addAndGet(change);
    }
  }
}
