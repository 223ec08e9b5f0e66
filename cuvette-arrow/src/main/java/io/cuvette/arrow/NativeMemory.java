package io.cuvette.arrow;

import io.cuvette.driver.ForeignCalls;

/** The memory of others in this process, as the module of native access has it. Stateless. */
final class NativeMemory {
  private NativeMemory() {}

  private static final class Found {
    static final ForeignCalls CALLS = ForeignCalls.find().orElseThrow(NativeMemory::missing);
  }

  private static UnsupportedOperationException missing() {
    return new UnsupportedOperationException(
        "Arrow's memory needs native access (expected: the module io.cuvette.ffm)");
  }

  static ForeignCalls calls() {
    try {
      return Found.CALLS;
    } catch (ExceptionInInitializerError | NoClassDefFoundError e) {
      UnsupportedOperationException missing = missing();
      missing.initCause(e);
      throw missing;
    }
  }
}
