package io.cuvette.arrow;

import java.util.Collection;
import org.jspecify.annotations.Nullable;

/** Closes several things, whatever happens. Stateless. */
final class Ends {
  private Ends() {}

  /** Closes all; throws what failed first, with what failed later. */
  static void closeAll(Collection<? extends AutoCloseable> all) {
    RuntimeException failure = null;
    for (AutoCloseable each : all) {
      RuntimeException next = closed(each);
      if (failure == null) {
        failure = next;
      } else if (next != null) {
        failure.addSuppressed(next);
      }
    }
    if (failure != null) {
      throw failure;
    }
  }

  /** Closes all after a failure, to which others are added. */
  static void closeAfter(Throwable failure, Collection<? extends AutoCloseable> all) {
    try {
      closeAll(all);
    } catch (RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  private static @Nullable RuntimeException closed(AutoCloseable each) {
    try {
      each.close();
      return null;
    } catch (RuntimeException e) {
      return e;
    } catch (Exception e) { // none of ours throws one
      return new IllegalStateException(e);
    }
  }
}
