package io.cuvette.testkit.races;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.InstantiatedGraph;
import java.lang.reflect.Method;
import java.lang.reflect.Parameter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Watches calls of a driver for handles that are destroyed while another call uses them, or that
 * are used when they have been, and for captures that end while work of them is queued. A driver
 * gives a handle's value to the next object, so that such a call is about somebody else's, or
 * crashes. Thread-safe.
 */
final class UsedHandles {
  private static final int MOST_FINDINGS = 5;
  private static final long BUILT_IN_STREAMS = 2;

  /** What is watched, by the names of parameters. */
  private static final Set<String> KINDS = Set.of("stream", "event", "graph", "executable");

  private static final Map<String, String> GIVEN_BY =
      Map.of(
          "streamCreateWithPriority", "stream",
          "eventCreate", "event",
          "ipcOpenEventHandle", "event",
          "graphCreate", "graph",
          "graphClone", "graph",
          "streamEndCapture", "graph",
          "graphInstantiate", "executable");

  private static final Map<String, String> DESTROYED_BY =
      Map.of(
          "streamDestroy", "stream",
          "eventDestroy", "event",
          "graphDestroy", "graph",
          "graphExecDestroy", "executable");

  private static final Set<String> QUESTIONS = Set.of("streamIsCapturing", "streamGetCaptureInfo");

  private record Key(String kind, long handle) {}

  /** What is known of a handle. */
  private static final class State {
    int uses;

    /** How many of the uses only ask whether there is a capture. */
    int questions;

    String lastUse = "";
    @Nullable Throwable destroyed;
  }

  private final Map<Key, State> states = new HashMap<>();
  private final List<AssertionError> findings = new ArrayList<>();
  private final Lock lock = new ReentrantLock();

  /** What was found, each with the stack of the call that came too late or too early. */
  List<AssertionError> findings() {
    lock.lock();
    try {
      return List.copyOf(findings);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Makes a call.
   *
   * @throws AssertionError in place of a call about what is gone, or in use where it is to go
   */
  @Nullable Object call(Method method, Object[] arguments, Call call) throws Throwable {
    List<State> used = enter(method, arguments);
    try {
      Object result = call.run();
      made(method, result);
      return result;
    } finally {
      leave(method, used);
    }
  }

  /** The call itself. */
  @FunctionalInterface
  interface Call {
    @Nullable Object run() throws Throwable;
  }

  private List<State> enter(Method method, Object[] arguments) {
    List<Key> keys = keys(method, arguments);
    if (keys.isEmpty()) {
      return List.of();
    }
    String destroyed = DESTROYED_BY.get(method.getName());
    lock.lock();
    try {
      List<State> used = new ArrayList<>();
      for (Key key : keys) {
        State state = states.computeIfAbsent(key, _ -> new State());
        check(method, key, state, key.kind.equals(destroyed));
        used.add(state);
      }
      used.forEach(state -> {
        state.uses++;
        state.questions += asks(method);
        state.lastUse = method.getName() + " on " + Thread.currentThread().getName();
      });
      return used;
    } finally {
      lock.unlock();
    }
  }

  private void check(Method method, Key key, State state, boolean destroys) {
    boolean ends = method.getName().equals("streamEndCapture") && state.uses > state.questions;
    String fault = null;
    if (state.destroyed != null) {
      fault = "%s of a %s that was destroyed".formatted(method.getName(), key.kind);
    } else if (ends || (destroys && state.uses > 0)) {
      fault = "%s during %s".formatted(method.getName(), state.lastUse);
    } else if (destroys) {
      state.destroyed = new Throwable(method.getName());
    }
    if (fault != null) {
      AssertionError error = new AssertionError(fault + ": 0x" + Long.toHexString(key.handle));
      if (state.destroyed != null) {
        error.addSuppressed(state.destroyed);
      }
      if (findings.size() < MOST_FINDINGS) {
        findings.add(error);
      }
      throw error;
    }
  }

  private void leave(Method method, List<State> used) {
    if (!used.isEmpty()) {
      lock.lock();
      try {
        used.forEach(state -> {
          state.uses--;
          state.questions -= asks(method);
        });
      } finally {
        lock.unlock();
      }
    }
  }

  private static int asks(Method method) {
    return QUESTIONS.contains(method.getName()) ? 1 : 0;
  }

  /** The value may be that of something that is gone. */
  private void made(Method method, @Nullable Object result) {
    String kind = GIVEN_BY.get(method.getName());
    List<Key> keys = List.of();
    if (kind != null && result instanceof Long handle) {
      keys = List.of(new Key(kind, handle));
    } else if (result instanceof InstantiatedGraph graph) {
      keys = List.of(new Key("executable", graph.executable()));
    } else if (result instanceof CaptureInfo capture && capture.isActive()) {
      keys = List.of(new Key("graph", capture.graph()));
    } else if (result instanceof AddedNode node) {
      keys = node.bodies().stream().map(body -> new Key("graph", body)).toList();
    }
    if (!keys.isEmpty()) {
      lock.lock();
      try {
        for (Key key : keys) {
          State known = states.get(key);
          if (known == null || known.destroyed != null) {
            states.put(key, new State());
          }
        }
      } finally {
        lock.unlock();
      }
    }
  }

  /** The default streams are there always. */
  private static List<Key> keys(Method method, Object[] arguments) {
    List<Key> keys = new ArrayList<>();
    Parameter[] parameters = method.getParameters();
    for (int i = 0; i < parameters.length; i++) {
      if (KINDS.contains(parameters[i].getName())
          && arguments[i] instanceof Long handle
          && Long.compareUnsigned(handle, BUILT_IN_STREAMS) > 0) {
        keys.add(new Key(parameters[i].getName(), handle));
      }
    }
    return keys;
  }
}
