package io.cuvette.ffm.part;

import io.cuvette.ffm.call.Entry;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;

/**
 * Java functions that nodes of graphs run, once for each launch. The driver says when none can run
 * any more: a user object of the graph raises a {@link Signal} when the graph, its clones, what was
 * instantiated from them and their launches are gone. What is raised is found by {@link #sweep}.
 * Thread-safe.
 */
final class GraphFunctions {
  private static final Map<Long, GraphFunction> ALL = new ConcurrentHashMap<>();

  /** Those that were given to an executable, which may outlive the graph that they came from. */
  private static final Map<Long, List<GraphFunction>> OF_EXECUTABLES = new ConcurrentHashMap<>();

  private GraphFunctions() {}

  /** A function, and what is raised when nothing runs it any more. */
  private static final class GraphFunction {
    final Entry driver;
    final Runnable body;
    final Signal gone;
    volatile boolean isOfExecutable;

    GraphFunction(Entry driver, Runnable body, Signal gone) {
      this.driver = driver;
      this.body = body;
      this.gone = gone;
    }

    boolean isOver() {
      return gone.isRaised() && !isOfExecutable;
    }
  }

  /** Gives a function a number that nodes run it by until a signal is raised. */
  static long add(Entry driver, Runnable body, Signal gone) {
    long number = HostFunctions.next();
    ALL.put(number, new GraphFunction(driver, body, gone));
    return number;
  }

  /** Whether no node has a function. */
  static boolean isEmpty() {
    return ALL.isEmpty();
  }

  /** Forgets a function that no node got. */
  static void remove(long number) {
    ALL.remove(number);
  }

  /** The function with a number; null if there is none, or none any more. */
  static @Nullable Runnable body(long number) {
    GraphFunction function = ALL.get(number);
    return function == null ? null : function.body;
  }

  /** What is raised when the graph of a function is gone; null if there is no such function. */
  static @Nullable Signal gone(long number) {
    GraphFunction function = ALL.get(number);
    return function == null ? null : function.gone;
  }

  /** Keeps a function until an executable is destroyed as well. */
  static void keep(long number, long executable) {
    GraphFunction function = ALL.get(number);
    if (function != null) {
      function.isOfExecutable = true;
      OF_EXECUTABLES.computeIfAbsent(executable, _ -> new CopyOnWriteArrayList<>()).add(function);
    }
  }

  /** Notes that an executable is destroyed; the signals say when its launches are over. */
  static void destroyed(long executable) {
    if (!OF_EXECUTABLES.isEmpty()) {
      List<GraphFunction> functions = OF_EXECUTABLES.remove(executable);
      if (functions != null) {
        functions.forEach(function -> function.isOfExecutable = false);
      }
    }
    sweep();
  }

  /** Forgets the functions that no launch can run any more. */
  static void sweep() {
    if (!ALL.isEmpty()) {
      ALL.values().removeIf(GraphFunction::isOver);
    }
  }

  /** Forgets the functions of a driver that is closed. */
  static void forget(Entry driver) {
    ALL.values().removeIf(function -> function.driver == driver);
    OF_EXECUTABLES.values().removeIf(functions -> functions.getFirst().driver == driver);
  }

  /** Runs a function, unless its driver is closed. */
  static void run(long number) {
    GraphFunction function = ALL.get(number);
    if (function != null) {
      function.body.run();
    }
  }
}
