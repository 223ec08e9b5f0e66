package io.cuvette.internal.interop;

import io.cuvette.driver.MathLibrary;
import io.cuvette.internal.base.Checks;
import io.cuvette.internal.base.Failures;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ObjectEnding;
import io.cuvette.internal.session.Session;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;

/**
 * The handles of libraries of one {@link Session}: one for each platform thread, device and library
 * that asked for it, and those that are lent. Destroying one waits for its device, so handles of
 * threads that have ended, and those that came back, are given to others; a few for each device and
 * library are kept for that. Thread-safe; no lock is held while a library is called.
 */
public final class LibraryHandles {
  /** How many that nobody uses are kept for a device and library. */
  private static final int MOST_IDLE = 8;

  private static final int HOPPER = 9;

  private final Session session;

  /** All that exist, until they are destroyed. */
  private final Set<DriverHandle> all = ConcurrentHashMap.newKeySet();

  private final Map<Use, Deque<DriverHandle>> idle = new ConcurrentHashMap<>();
  private final Map<Thread, Map<Use, DriverHandle>> ofThreads = new ConcurrentHashMap<>();

  private record Use(MathLibrary library, Device device) {}

  /** None yet. */
  public LibraryHandles(Session session) {
    this.session = session;
    session.children().add(this::destroyAll);
    session.whenDrained(this::sweep);
  }

  /**
   * The handle of this thread for the device of a stream, bound to the stream.
   *
   * @throws WrongThreadException on a virtual thread
   */
  public long ofThread(MathLibrary library, OpenStream stream, Workspace.Source source) {
    Thread thread = Thread.currentThread();
    if (thread.isVirtual()) {
      throw new WrongThreadException(
          ("a handle of %s belongs to an OS thread, which %s does not have (expected: a platform"
                  + " thread, or a handle that is lent for a stream, such as useCublas)")
              .formatted(library, thread));
    }
    stream.checkOf(session);
    Map<Use, DriverHandle> mine = ofThreads.get(thread);
    Use use = new Use(library, stream.on());
    DriverHandle handle = mine == null ? null : mine.get(use);
    if (handle == null) {
      sweep();
      handle = take(use, stream);
      ofThreads.computeIfAbsent(thread, _ -> new ConcurrentHashMap<>()).put(use, handle);
    }
    if (!handle.isBoundTo(stream)) {
      handle.bind(stream, bytes(library, stream.on()), source);
    }
    return handle.giveOut();
  }

  /** The size of the workspace that NVIDIA recommends: 32 MiB since compute capability 9.0. */
  public static long bytes(MathLibrary library, Device device) {
    if (!library.takesWorkspace()) {
      return 0;
    }
    return device.computeCapability().major() >= HOPPER ? 32L << 20 : 4L << 20;
  }

  /** Lends a handle that is bound to a stream of the device; {@link #end} follows. */
  public DriverHandle lend(
      MathLibrary library, Device device, OpenStream stream, long bytes, Workspace.Source source) {
    Objects.requireNonNull(library, "library");
    Checks.notNegative("workspaceBytes", bytes);
    stream.checkOf(session);
    if (stream.on() != device) {
      throw new IllegalArgumentException(
          "stream: of %s (expected: of %s)".formatted(stream.on(), device));
    }
    sweep();
    DriverHandle handle = take(new Use(library, stream.on()), stream);
    try {
      handle.bind(stream, bytes, source);
      return handle;
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, () -> giveBack(handle));
      throw e;
    }
  }

  /**
   * What takes a handle back that was lent: when its object is closed, forgotten, or at the end.
   */
  public ObjectEnding end(Object face, DriverHandle handle) {
    try {
      return ObjectEnding.of(face, session, handle.toString(), true, () -> giveBack(handle));
    } catch (RuntimeException | Error e) {
      Failures.runAfter(e, () -> giveBack(handle));
      throw e;
    }
  }

  /** One that was bound to the stream before, if there is one: it need not be told again. */
  private DriverHandle take(Use use, OpenStream stream) {
    Deque<DriverHandle> all = idleOf(use);
    DriverHandle same =
        all.stream().filter(each -> each.wasBoundTo(stream)).findFirst().orElse(null);
    if (same != null && all.remove(same)) {
      return same;
    }
    DriverHandle free = all.pollFirst();
    return free != null ? free : create(use);
  }

  private Deque<DriverHandle> idleOf(Use use) {
    return idle.computeIfAbsent(use, _ -> new ConcurrentLinkedDeque<>());
  }

  /** Nothing is left without Java heap: it is listed before the library makes it. */
  private DriverHandle create(Use use) {
    DriverHandle made = new DriverHandle(use.library, use.device);
    return session
        .gate()
        .make(() -> {
          all.add(made);
          try {
            made.create();
          } catch (RuntimeException | Error e) {
            all.remove(made);
            throw e;
          }
          return made;
        });
  }

  /** Takes back a handle that nobody uses any more, with its workspace. */
  private void giveBack(DriverHandle handle) {
    Failures failures = new Failures();
    failures.run(handle::unbind);
    failures.run(() -> keep(handle));
    failures.throwFirst();
  }

  /** Keeps a handle for others, or destroys it if there are enough. */
  private void keep(DriverHandle handle) {
    Deque<DriverHandle> others = idleOf(new Use(handle.library, handle.device));
    if (others.size() < MOST_IDLE) {
      others.addFirst(handle);
    } else {
      session.gate().run(() -> destroy(handle));
    }
  }

  private void destroy(DriverHandle handle) {
    handle.destroy();
    all.remove(handle);
  }

  /** Takes back the handles of threads that have ended. */
  private void sweep() {
    List<Thread> ended = ofThreads.keySet().stream().filter(each -> !each.isAlive()).toList();
    Failures failures = new Failures();
    for (Thread thread : ended) {
      Map<Use, DriverHandle> left = ofThreads.remove(thread);
      if (left != null) {
        left.values().forEach(handle -> failures.run(() -> giveBack(handle)));
      }
    }
    failures.throwFirst();
  }

  /** Destroys all at the end of the session, which has ended the memory itself. */
  private void destroyAll() {
    Failures failures = new Failures();
    List.copyOf(all).forEach(handle -> failures.run(() -> destroy(handle)));
    ofThreads.clear();
    idle.clear();
    failures.throwFirst();
  }
}
