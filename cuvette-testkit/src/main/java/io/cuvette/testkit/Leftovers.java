package io.cuvette.testkit;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.OpenObject;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;

/**
 * What a Cuda still has once a program is done with it, before its close takes everything back:
 * objects that the program left open, and memory and handles that the library lost. Immutable.
 *
 * @param open the open objects
 * @param live what is live in the driver without an open object; empty if there are any
 * @param wrong the statistics of default pools that are not back to zero
 */
record Leftovers(List<OpenObject> open, List<LiveHandles.Made> live, List<String> wrong) {
  /** Makers of what lasts as long as the Cuda: what callbacks need. */
  private static final Set<String> LASTING =
      Set.of("io.cuvette.CallbackFlags", "io.cuvette.ThreadStreams");

  /** Makes one event for a stream, which lasts as long as the stream. */
  private static final String MARK = "io.cuvette.IdleMark";

  private static final int ROUNDS = 4;

  private static final Set<String> LIBRARY =
      Set.of(
          "io.cuvette",
          "io.cuvette.driver",
          "io.cuvette.instrument",
          "io.cuvette.internal",
          "io.cuvette.pool",
          "io.cuvette.sim");

  /**
   * Waits for the devices, empties the caches, and looks at what is left.
   *
   * @param devices how many devices the program uses whether it allocates there or not
   * @throws io.cuvette.driver.CudaException after an error of a device, when nothing can be freed
   */
  static Leftovers of(Cuda cuda, LiveHandles handles, int devices) {
    List<CudaDevice> used =
        cuda.devices().stream().filter(each -> each.id() < devices || isUsed(cuda, each)).toList();
    // What one wait gives back is freed in stream order, and what waits for that behind the next.
    for (int round = 0; round < ROUNDS; round++) {
      long _ = cuda.leaksFound(); // releases what could not be released when it was closed
      used.forEach(CudaDevice::synchronize);
    }
    used.forEach(cuda.defaultMemoryPool()::freeAllBlocks);
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
    List<OpenObject> open = cuda.openObjects();
    return new Leftovers(open, open.isEmpty() ? lost(handles) : List.of(), wrong(cuda, used));
  }

  private static boolean isUsed(Cuda cuda, CudaDevice device) {
    return cuda.defaultMemoryPool().stats(device).heldBytes() != 0;
  }

  /** Not what the library keeps for itself. */
  private static List<LiveHandles.Made> lost(LiveHandles handles) {
    Set<Long> marked = new HashSet<>();
    return handles.live().stream()
        .filter(made -> !isMadeBy(made, LASTING))
        .filter(made -> !isMadeBy(made, Set.of(MARK)) || !isFirstMark(handles, made, marked))
        .toList();
  }

  /** A second mark of a stream is lost, and one of a stream that is gone. */
  private static boolean isFirstMark(LiveHandles handles, LiveHandles.Made mark, Set<Long> marked) {
    OptionalLong stream = handles.liveStreamOf(mark);
    return stream.isPresent() && marked.add(stream.getAsLong());
  }

  private static boolean isMadeBy(Throwable site, Set<String> makers) {
    return Arrays.stream(site.getStackTrace())
        .anyMatch(frame -> makers.contains(frame.getClassName()));
  }

  private static List<String> wrong(Cuda cuda, List<CudaDevice> devices) {
    List<String> wrong = new ArrayList<>();
    for (CudaDevice device : devices) {
      var stats = cuda.defaultMemoryPool().stats(device);
      if (stats.usedBytes() != 0 || stats.heldBytes() != stats.freeBytes()) {
        wrong.add(stats + " (expected: used = 0, held = free)");
      }
    }
    var pinned = cuda.defaultPinnedMemoryPool().stats();
    if (pinned.usedBytes() != 0 || pinned.heldBytes() != pinned.freeBytes()) {
      wrong.add(pinned + " (expected: used = 0, held = free)");
    }
    return wrong;
  }

  /** Fails with all that is left, each with the place where it was made. */
  void throwIfAny() {
    if (!open.isEmpty() || !live.isEmpty() || !wrong.isEmpty()) {
      throw failure();
    }
  }

  /** Fails with what the library lost, which the program cannot close. */
  void throwIfLost() {
    if (!live.isEmpty()) {
      throw failure();
    }
  }

  private AssertionError failure() {
    List<String> lines = new ArrayList<>(wrong);
    open.forEach(one -> lines.add("open: %s, made at %s".formatted(one.what(), place(one.site()))));
    live.forEach(
        one -> lines.add("live in the driver: %s at %s".formatted(one.getMessage(), place(one))));
    AssertionError failure =
        new AssertionError("left behind (expected: nothing):\n  " + String.join("\n  ", lines));
    open.forEach(one -> failure.addSuppressed(one.site()));
    live.forEach(failure::addSuppressed);
    return failure;
  }

  /** The call of the library. */
  private static String place(Throwable site) {
    return Arrays.stream(site.getStackTrace())
        .filter(frame -> !isOfLibrary(packageOf(frame.getClassName())))
        .filter(frame -> !frame.getClassName().equals(LiveHandles.class.getName()))
        .findFirst()
        .map(StackTraceElement::toString)
        .orElse("an unknown place");
  }

  private static boolean isOfLibrary(String name) {
    return LIBRARY.stream().anyMatch(own -> name.equals(own) || name.startsWith(own + ".internal"));
  }

  private static String packageOf(String className) {
    return className.substring(0, Math.max(0, className.lastIndexOf('.')));
  }
}
