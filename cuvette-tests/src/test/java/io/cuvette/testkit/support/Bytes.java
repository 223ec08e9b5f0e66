package io.cuvette.testkit.support;

import io.cuvette.Buffer;
import java.lang.foreign.MemorySegment;
import java.util.SplittableRandom;

/** Byte patterns, and what is in a buffer. Stateless. */
public final class Bytes {
  private Bytes() {}

  public static byte[] random(long seed, int bytes) {
    byte[] pattern = new byte[bytes];
    new SplittableRandom(seed).nextBytes(pattern);
    return pattern;
  }

  /** A buffer's bytes by a copy that waits on the current stream. */
  public static byte[] of(Buffer buffer) {
    byte[] content = new byte[Math.toIntExact(buffer.byteSize())];
    buffer.copyTo(MemorySegment.ofArray(content));
    return content;
  }

  /** Whether all bytes of a buffer are this one; for megabytes, which an assertion would box. */
  public static boolean areAll(Buffer buffer, int value) {
    for (byte each : of(buffer)) {
      if (each != value) {
        return false;
      }
    }
    return true;
  }

  public static void put(Buffer buffer, byte[] content) {
    buffer.copyFrom(MemorySegment.ofArray(content));
  }
}
