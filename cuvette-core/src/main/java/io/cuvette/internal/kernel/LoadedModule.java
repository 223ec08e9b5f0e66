package io.cuvette.internal.kernel;

import io.cuvette.internal.base.Once;
import io.cuvette.internal.session.Session;
import io.cuvette.internal.stream.UsedMemory;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * The end of a library of the driver: behind the launches of its kernels in all streams, and once
 * no graph has one of them. Thread-safe.
 */
final class LoadedModule extends UsedMemory {
  private final Modules modules;
  private final Session session;
  private final long library;
  private final String text;
  private final Runnable end = this::endByOwner;
  private final Runnable unload = this::unload;
  private final Once unloaded = new Once();

  /** Whether it waits to be tried again, where it can be only once. */
  private final AtomicBoolean left = new AtomicBoolean();

  /** The thread that is ending it, which gets what fails; others only pass by. */
  private volatile @Nullable Thread releasing;

  /**
   * The end of a module; one that is shared is not listed as open, for it ends with the session.
   */
  LoadedModule(OpenModule of, Modules modules, long library, String text, boolean isShared) {
    super(
        of, modules.session.leaks().queue, isShared ? null : modules.session.leaks().site(), null);
    this.modules = modules;
    this.session = modules.session;
    this.library = library;
    this.text = text;
  }

  /** Has the session look after it. All or nothing without Java heap. */
  void listed() {
    try {
      session.children().add(end);
      opened();
    } catch (OutOfMemoryError e) {
      clear();
      session.children().remove(end);
      throw e;
    }
  }

  long library() {
    return library;
  }

  @Override
  public long blockBytes() {
    return 0;
  }

  @Override
  public String describe() {
    return text;
  }

  @Override
  public void release() {
    left.set(false);
    releasing = Thread.currentThread();
    try {
      modules.closed.free(this, null);
    } finally {
      releasing = null;
    }
  }

  void unloadBehindLaunches() {
    try {
      session.gate().run(unload);
    } catch (RuntimeException e) {
      if (Thread.currentThread().equals(releasing)) {
        throw e;
      }
      failed(); // whoever closed it has long gone on: it is tried again
    }
  }

  @Override
  public void failed() {
    if (left.compareAndSet(false, true)) {
      session.leaks().failed(this);
    }
  }

  private void endByOwner() {
    takeOver();
    unload();
  }

  private void unload() {
    unloaded.free(() -> session.driver().kernels().libraryUnload(library));
    session.children().remove(end);
  }
}
