package io.cuvette.testkit;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.ForeignLoan;
import io.cuvette.OpenObject;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * What a Cuda still has once a program is done with it, before its close takes everything back:
 * objects that the program left open, and memory and handles that the library lost. Immutable.
 *
 * @param open the open objects
 * @param live what is live in the driver without an open object; empty if there are any
 * @param wrong the statistics of default pools that are not back to zero, unless there are open
 *     objects, which may be why; and descriptors of exported memory that are open
 */
record Leftovers(List<OpenObject> open, List<LiveHandles.Made> live, List<String> wrong) {
  /** Makes memory for callbacks to wait in, which lasts as long as the Cuda. */
  private static final String FLAGS = "io.cuvette.internal.callback.CallbackFlags";

  /** Enough for 16,384 callbacks each. A thread that waited a second for another makes one too. */
  private static final int MOST_FLAGS = 4;

  /** Makes a stream to be current inside callbacks, one for each device. */
  private static final String CALLBACK_STREAMS = "io.cuvette.ThreadStreams";

  /** Loads modules that last as long as the Cuda. */
  private static final String SHARED_MODULES = "io.cuvette.internal.kernel.SharedModules";

  /** Makes one event for a stream, which lasts as long as the stream. */
  private static final String MARK = "io.cuvette.internal.fence.IdleMark";

  /**
   * What one wait makes free is freed by the next look; a pool of the driver whose last block that
   * is waits for that free once more, and goes with the look after it.
   */
  private static final int ROUNDS = 3;

  private static final Duration PATIENCE = Duration.ofSeconds(10);
  private static final long POLL_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private static final Set<String> LIBRARY =
      Set.of(
          "io.cuvette",
          "io.cuvette.array",
          "io.cuvette.arrow",
          "io.cuvette.driver",
          "io.cuvette.instrument",
          "io.cuvette.sim");

  /**
   * Waits for the devices, empties the caches, and looks at what is left. What code outside of Java
   * has given back is waited for.
   *
   * @param devices how many devices the program uses whether it allocates there or not
   * @throws io.cuvette.driver.CudaException after an error of a device, when nothing can be freed
   */
  static Leftovers of(Cuda cuda, LiveHandles handles, int devices) {
    Leftovers left = find(cuda, handles, devices);
    if (left.isAny()) {
      awaitReturns();
      left = find(cuda, handles, devices);
    }
    return left;
  }

  private static Leftovers find(Cuda cuda, LiveHandles handles, int devices) {
    List<CudaDevice> used =
        cuda.devices().stream().filter(each -> each.id() < devices || isUsed(cuda, each)).toList();
    for (int round = 0; round < ROUNDS; round++) {
      long _ = cuda.leaksFound(); // releases what could not be released when it was closed
      freeCaches(cuda, used);
      used.forEach(CudaDevice::synchronize);
    }
    freeCaches(cuda, used);
    List<OpenObject> open = cuda.openObjects();
    List<String> wrong = open.isEmpty() ? wrong(cuda, used) : new ArrayList<>();
    for (Throwable site : handles.exported.open()) {
      wrong.add("open: %s, made at %s".formatted(site.getMessage(), place(site)));
    }
    return new Leftovers(
        open, open.isEmpty() ? lost(handles, cuda.deviceCount()) : List.of(), wrong);
  }

  /** A thread of the library ends what was given back, one after the other. */
  private static void awaitReturns() {
    ForeignLoan last = ForeignLoan.of(() -> {});
    last.giveBack();
    long start = System.nanoTime();
    while (!last.isOver() && System.nanoTime() - start < PATIENCE.toNanos()) {
      LockSupport.parkNanos(POLL_NANOS);
    }
  }

  private static void freeCaches(Cuda cuda, List<CudaDevice> used) {
    used.forEach(cuda.defaultMemoryPool()::freeAllBlocks);
    cuda.defaultPinnedMemoryPool().freeAllBlocks();
  }

  private static boolean isUsed(Cuda cuda, CudaDevice device) {
    return cuda.defaultMemoryPool().stats(device).heldBytes() != 0;
  }

  /** Not what the library keeps for itself. */
  private static List<LiveHandles.Made> lost(LiveHandles handles, int devices) {
    Set<Long> marked = new HashSet<>();
    List<LiveHandles.Made> live = handles.live();
    Set<LiveHandles.Made> kept = new HashSet<>(madeBy(live, FLAGS, MOST_FLAGS));
    kept.addAll(madeBy(live, CALLBACK_STREAMS, devices));
    return live.stream()
        .filter(made -> !kept.contains(made))
        .filter(made -> !isMadeBy(made, SHARED_MODULES))
        .filter(made -> !isMadeBy(made, MARK) || !isFirstMark(handles, made, marked))
        .toList();
  }

  /** A second mark of a stream is lost, and one of a stream that is gone. */
  private static boolean isFirstMark(LiveHandles handles, LiveHandles.Made mark, Set<Long> marked) {
    OptionalLong stream = handles.liveStreamOf(mark);
    return stream.isPresent() && marked.add(stream.getAsLong());
  }

  private static List<LiveHandles.Made> madeBy(
      List<LiveHandles.Made> live, String maker, int most) {
    return live.stream().filter(made -> isMadeBy(made, maker)).limit(most).toList();
  }

  private static boolean isMadeBy(Throwable site, String maker) {
    return Arrays.stream(site.getStackTrace())
        .anyMatch(frame -> frame.getClassName().equals(maker));
  }

  private static List<String> wrong(Cuda cuda, List<CudaDevice> devices) {
    List<String> wrong = new ArrayList<>();
    for (CudaDevice device : devices) {
      var stats = cuda.defaultMemoryPool().stats(device);
      if (stats.usedBytes() != 0 || stats.heldBytes() != 0) {
        wrong.add(stats + " (expected: used = held = 0)");
      }
    }
    var pinned = cuda.defaultPinnedMemoryPool().stats();
    if (pinned.usedBytes() != 0 || pinned.heldBytes() != 0) {
      wrong.add(pinned + " (expected: used = held = 0)");
    }
    return wrong;
  }

  /** Fails with all that is left, each with the place where it was made. */
  void throwIfAny() {
    if (isAny()) {
      throw failure();
    }
  }

  private boolean isAny() {
    return !open.isEmpty() || !live.isEmpty() || !wrong.isEmpty();
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
        .filter(frame -> !frame.getClassName().startsWith(LiveHandles.class.getName()))
        .filter(frame -> !frame.getClassName().startsWith(ExportedFiles.class.getName()))
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
