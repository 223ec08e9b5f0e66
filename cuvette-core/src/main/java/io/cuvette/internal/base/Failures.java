package io.cuvette.internal.base;

import org.jspecify.annotations.Nullable;

/**
 * Goes on with a clean-up after a failure: the first one is thrown at the end, the rest suppressed.
 */
public final class Failures {
  private @Nullable Throwable first;

  /** Does a step after a failure, to which that of the step is added, errors too. */
  public static void runAfter(Throwable failure, Runnable step) {
    try {
      step.run();
    } catch (RuntimeException | Error e) {
      suppress(failure, e);
    }
  }

  /** The first of two failures with the second added to it. */
  public static <E extends Throwable> E joined(@Nullable E first, E later) {
    if (first == null) {
      return later;
    }
    suppress(first, later);
    return first;
  }

  /** Adds a later failure to the first one, which may be the same object if user code threw it. */
  private static void suppress(Throwable first, Throwable later) {
    if (later != first) {
      try {
        first.addSuppressed(later);
      } catch (OutOfMemoryError e) {
        // The first is what matters.
      }
    }
  }

  public void run(Runnable step) {
    try {
      step.run();
    } catch (RuntimeException | Error e) {
      add(e);
    }
  }

  /** Takes note of a failure. */
  public void add(Throwable e) {
    first = joined(first, e);
  }

  /** Has what ends the clean-up name the failures before. */
  public void addTo(Throwable end) {
    Throwable before = first;
    if (before != null) {
      suppress(end, before);
    }
  }

  public void throwFirst() {
    rethrow(first);
  }

  /** Throws a failure if there is one. */
  public static void rethrow(@Nullable Throwable failure) {
    switch (failure) {
      case null -> {}
      case Error e -> throw e;
      case RuntimeException e -> throw e;
      default -> throw new AssertionError(failure);
    }
  }
}
