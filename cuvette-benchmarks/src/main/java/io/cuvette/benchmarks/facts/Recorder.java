package io.cuvette.benchmarks.facts;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.NoSuchElementException;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Writes facts as the Python programs' recorder.py does, errors included. Not thread-safe. */
final class Recorder {
  private static final int MOST_TEXT = 300;

  private final String library;
  private final PrintStream out;

  Recorder(String library, OutputStream out) {
    this.library = library;
    this.out = new PrintStream(out, true, StandardCharsets.UTF_8);
  }

  /** An operation of which only matters whether it throws. */
  @FunctionalInterface
  interface Step {
    void run() throws Exception;
  }

  void about(String text) {
    write("\"about\":" + text(text));
  }

  void missing(String reason) {
    write("\"missing\":" + text(reason));
  }

  /** Writes what an operation returns, or the kind of error it throws. */
  void fact(String name, Callable<? extends @Nullable Object> operation) {
    take(name, operation, true);
  }

  /** Writes whether an operation throws, and returns what it returned. */
  <T> @Nullable T made(String name, Callable<? extends @Nullable T> operation) {
    return take(name, operation, false);
  }

  /** Writes whether an operation throws. */
  void outcome(String name, Step operation) {
    take(
        name,
        () -> {
          operation.run();
          return null;
        },
        false);
  }

  private <T> @Nullable T take(
      String name, Callable<? extends @Nullable T> operation, boolean valued) {
    String fact = "\"fact\":" + text(name);
    try {
      T value = operation.call();
      write(fact + ",\"value\":" + (valued ? json(value) : "\"no error\""));
      return value;
    } catch (Exception e) {
      write(fact + ",\"error\":" + text(category(e)) + ",\"message\":" + text(String.valueOf(e)));
      return null;
    }
  }

  private static String category(Exception e) {
    return switch (e) {
      case CudaException cuda ->
          cuda.status() == CudaStatus.OUT_OF_MEMORY ? "memory" : "cuda:" + cuda.status().name();
      case IllegalArgumentException _, IndexOutOfBoundsException _ -> "value";
      case UnsupportedOperationException _ -> "unsupported";
      case NoSuchElementException _ -> "no such element";
      case IllegalStateException _ -> "state";
      case NullPointerException _, ClassCastException _ -> "type";
      default -> e.getClass().getSimpleName();
    };
  }

  private static String json(@Nullable Object value) {
    return switch (value) {
      case null -> "null";
      case Boolean _, Number _ -> value.toString();
      case Collection<?> list ->
          list.stream().map(Recorder::json).collect(Collectors.joining(",", "[", "]"));
      default -> text(value.toString());
    };
  }

  private static String text(String value) {
    String safe = value.replaceAll("[\\p{Cntrl}\"\\\\]+", " ");
    return '"' + safe.substring(0, Math.min(safe.length(), MOST_TEXT)) + '"';
  }

  private void write(String fields) {
    out.println("{\"library\":" + text(library) + "," + fields + "}");
  }
}
