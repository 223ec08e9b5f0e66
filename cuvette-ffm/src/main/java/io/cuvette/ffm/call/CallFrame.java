package io.cuvette.ffm.call;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.LaunchShape;
import io.cuvette.ffm.link.Layouts;
import io.cuvette.ffm.link.NativeAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.jspecify.annotations.Nullable;

/**
 * What one call into the driver needs besides its arguments: room for its results, and the context
 * to go back to. Used by one call at a time.
 *
 * <p>A platform thread has a frame of its own, and further ones for calls made while one is in
 * flight (a C allocator that calls back into Java). Virtual threads borrow theirs: there may be a
 * million of them, and few are in a call.
 */
public final class CallFrame {
  /** Bytes for results; all attributes of pointers fit. */
  public static final long RESULT_BYTES = 16;

  private static final long CURRENT = 16;
  private static final long LOCATION = 24;
  private static final long MODE = 32;
  private static final long SPARE = 40;
  private static final long LAUNCH = 64; // the next cache line
  private static final long LINE = 64;
  private static final long BYTES = LAUNCH + LaunchMemory.BYTES;

  // Frames are aligned; an aligned layout would check that each time.
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

  /** All memory: reading through a constant costs less than through a segment for each frame. */
  private static final MemorySegment MEMORY = NativeAccess.memory(0, Long.MAX_VALUE);

  private static final ThreadLocal<CallFrame> OWN =
      ThreadLocal.withInitial(() -> new CallFrame(false));
  private static final FramePool BORROWED = new FramePool();

  /** The address of {@value #RESULT_BYTES} bytes of results, zero when the call starts. */
  public final long out;

  private final MemorySegment room = Arena.ofAuto().allocate(BYTES, LINE);
  private final MemorySegment location = room.asSlice(LOCATION, Layouts.LOCATION);
  private final boolean borrowed;
  private boolean taken;
  private long previous;
  private boolean relaxed;

  /** The context of a call that was started without it; 0 for none. */
  private long missing;

  private @Nullable CallFrame inner;

  CallFrame(boolean borrowed) {
    this.borrowed = borrowed;
    this.out = room.address();
  }

  /** The frame for a call of this thread; ends with {@link #leave}. */
  public static CallFrame take() {
    CallFrame frame = Thread.currentThread().isVirtual() ? BORROWED.take() : OWN.get();
    while (frame.taken) {
      frame = frame.inner();
    }
    frame.taken = true;
    MEMORY.set(LONG, frame.out, 0);
    MEMORY.set(LONG, frame.out + Long.BYTES, 0);
    return frame;
  }

  /** The same, with the thread's capture mode relaxed. */
  static CallFrame takeRelaxed() {
    CallFrame frame = take();
    frame.relax();
    return frame;
  }

  private CallFrame inner() {
    CallFrame frame = inner;
    if (frame == null) {
      frame = new CallFrame(false);
      inner = frame;
    }
    return frame;
  }

  /**
   * Makes a context current on the thread until {@link #leave}. From here to there nothing may
   * block: a virtual thread could go on elsewhere, under another context.
   */
  void enter(long context) {
    int status;
    try {
      status = (int) CallFunctions.GET_CURRENT.invokeExact(out + CURRENT);
      long current = MEMORY.get(LONG, out + CURRENT);
      if (status == 0 && current != context) {
        status = (int) CallFunctions.SET_CURRENT.invokeExact(context);
        previous = current;
      }
    } catch (Throwable e) {
      throw broken(e);
    }
    if (status != CudaStatus.SUCCESS.code()) {
      previous = 0;
      leave();
      throw Call.of("cuCtxSetCurrent(context=%#x)", context).failed(status);
    }
  }

  /** Notes the context of a call whose handles should name it. */
  void mayNeed(long context) {
    missing = context;
  }

  /**
   * Whether the driver refused a call that was started without a context for want of one, which is
   * current now: the call is to be made again.
   */
  public boolean lacksContext(int status) {
    if (missing == 0
        || (status != CudaStatus.INVALID_CONTEXT.code()
            && status != CudaStatus.INVALID_HANDLE.code()
            && status != CudaStatus.CONTEXT_IS_DESTROYED.code())) {
      return false;
    }
    long context = missing;
    missing = 0;
    enter(context);
    return true;
  }

  /**
   * Has captures of other threads, or of this one, forbid nothing until {@link #leave}. The mode is
   * the thread's, for every library that runs on it.
   */
  void relax() {
    MEMORY.set(INT, out + MODE, Layouts.CAPTURE_RELAXED);
    int status = exchangeMode();
    if (status != CudaStatus.SUCCESS.code()) {
      leave();
      throw Call.of("cuThreadExchangeStreamCaptureMode(mode=2)").failed(status);
    }
    relaxed = true;
  }

  /** Swaps the mode of the thread and the one in the frame. */
  private int exchangeMode() {
    try {
      return (int) CallFunctions.EXCHANGE_MODE.invokeExact(out + MODE);
    } catch (Throwable e) {
      throw broken(e);
    }
  }

  /**
   * Ends the call: goes back to the mode that the thread had, and to the context that was current,
   * if there was one.
   *
   * @return the first 8 bytes of results; a shorter value is in the low bytes
   */
  public long leave() {
    long result = MEMORY.get(LONG, out);
    missing = 0;
    if (relaxed) {
      relaxed = false;
      int _ = exchangeMode(); // it succeeded before, and knows no reason to fail
    }
    if (previous != 0) {
      restore();
    }
    taken = false;
    if (borrowed) {
      BORROWED.give(this);
    }
    return result;
  }

  private void restore() {
    long context = previous;
    previous = 0;
    try {
      // A context that is gone by now cannot come back: nothing to do about a failure.
      int _ = (int) CallFunctions.SET_CURRENT.invokeExact(context);
    } catch (Throwable e) {
      throw NativeAccess.unexpected(e);
    }
  }

  /**
   * Ends a call that was not made, because of a missing function or a segment that cannot be
   * passed.
   */
  public RuntimeException broken(Throwable cause) {
    leave();
    return NativeAccess.unexpected(cause);
  }

  /** The text that the first 8 bytes of results point to; to be read before {@link #leave}. */
  public String text() {
    return MEMORY.getString(MEMORY.get(LONG, out));
  }

  /** The second 8 bytes of results; to be read before {@link #leave}. */
  public long second() {
    return MEMORY.get(LONG, out + Long.BYTES);
  }

  /** The address of room for another 4 bytes of results. */
  public long spare() {
    return out + SPARE;
  }

  /** What is in that room; to be read before {@link #leave}. */
  public int spareResult() {
    return MEMORY.get(INT, out + SPARE);
  }

  /** Puts a value where the call reads it, and returns where; a shorter one is in the low bytes. */
  public long value(long value) {
    MEMORY.set(LONG, out, value);
    return out;
  }

  /** A CUmemLocation to pass. */
  public MemorySegment location(int type, int id) {
    location.set(INT, 0, type);
    location.set(INT, Integer.BYTES, id);
    return location;
  }

  /**
   * The address of room for a structure of so many words of 8 bytes, all zero, where a launch has
   * its own: other memory would need a cleaner for each call.
   */
  public long structure(int words) {
    for (int i = 0; i < words; i++) {
      member(i, 0);
    }
    return out + LAUNCH;
  }

  /** Sets a word of the structure. */
  public void member(int word, long value) {
    MEMORY.set(LONG, out + LAUNCH + word * (long) Long.BYTES, value);
  }

  /** A word of the structure, with a shorter member in the low bytes; before {@link #leave}. */
  public long member(int word) {
    return MEMORY.get(LONG, out + LAUNCH + word * (long) Long.BYTES);
  }

  /** The address of a CUlaunchConfig to pass. */
  public long launchConfig(LaunchShape shape, long stream) {
    LaunchMemory.write(MEMORY, out + LAUNCH, shape, stream);
    return out + LAUNCH;
  }
}
