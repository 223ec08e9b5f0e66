package io.cuvette.ffm;

import org.jspecify.annotations.Nullable;

/**
 * How a call into the driver starts; what the groups of calls are built on. Thread-safe.
 *
 * <p>A capture in global mode forbids every thread what could be unsafe, and is invalid once it was
 * tried. So calls run in relaxed mode, but for those that only queue work or ask about captures.
 */
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

  /** Throws if no call may be made any more. */
  void checkOpen();

  /** Starts a call that needs no context. */
  CallFrame enter();

  /** Starts a call with the context of a device current on the thread. */
  CallFrame enter(int device);

  /**
   * Starts a call about a stream or an event, whose handle names the context; it is made current
   * for the handles that mean another stream in each context, and if the driver misses it ({@link
   * CallFrame#lacksContext}).
   */
  CallFrame enterFor(int device, long handle);

  /** Like {@link #enter(int)}, for a call that no capture forbids, in the mode of the thread. */
  CallFrame enterAsIs(int device);

  /**
   * Starts a call that gives something back: null once the JVM is shutting down. The process takes
   * everything with it, and the driver may be gone already.
   */
  @Nullable CallFrame enterToFree();

  /** Like {@link #enterToFree()}, with the context of a device current on the thread. */
  @Nullable CallFrame enterToFree(int device);

  /** Like {@link #enterToFree()}, for a call about a stream, as {@link #enterFor} starts it. */
  @Nullable CallFrame enterToFree(int device, long handle);
}
