package io.cuvette;

/**
 * A change of what is current on this thread, undone by {@link #close()}: {@code try (var _ =
 * stream.use()) { … }}. Scopes close last in, first out, on the thread that opened them; both are
 * checked before anything changes. Confined to its thread.
 */
public final class Scope implements AutoCloseable {
  private final OpenScopes open;
  private final @org.jspecify.annotations.Nullable Scope outer;
  private final String what;
  private final Runnable restore;
  private boolean closed;

  Scope(OpenScopes open, String what, Runnable restore) {
    this.open = open;
    this.what = what;
    this.restore = restore;
    this.outer = open.innermost;
    open.innermost = this;
  }

  /**
   * Makes current again exactly what was before. Does nothing the second time.
   *
   * @throws WrongThreadException on another thread than the one that opened the scope
   * @throws IllegalStateException if a scope opened later is still open
   */
  @Override
  public void close() {
    if (!Thread.currentThread().equals(open.thread)) {
      throw new WrongThreadException(
          "%s was opened by %s and cannot be closed by %s"
              .formatted(this, open.thread, Thread.currentThread()));
    }
    if (closed) {
      return;
    }
    if (open.innermost != this) {
      throw new IllegalStateException(
          "%s cannot be closed before %s, which was opened later".formatted(this, open.innermost));
    }
    closed = true;
    open.innermost = outer;
    restore.run();
  }

  @Override
  public String toString() {
    return "scope of " + what;
  }
}
