package io.cuvette.ffm;

import org.jspecify.annotations.Nullable;

/** How a call into the driver starts; what the groups of calls are built on. Thread-safe. */
interface FfmCalls {

  /** CUresult of a call that worked. */
  int SUCCESS = 0;

  /** CUresult of an argument that is wrong. */
  int INVALID_VALUE = 1;

  /** CUresult of a question about work that still runs. */
  int NOT_READY = 600;

  /** The devices and their contexts. */
  Contexts contexts();

  /** The context of a device, retained if it was not yet. */
  long context(int device);

  /** Starts a call that needs no context. */
  CallFrame enter();

  /** Starts a call with the context of a device current on the thread. */
  CallFrame enter(int device);

  /**
   * Starts a call that gives something back: null once the JVM is shutting down. The process takes
   * everything with it, and the driver may be gone already.
   */
  @Nullable CallFrame enterToFree();

  /** Like {@link #enterToFree()}, with the context of a device current on the thread. */
  @Nullable CallFrame enterToFree(int device);
}
