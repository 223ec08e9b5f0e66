package io.cuvette.internal.stream;

import org.jspecify.annotations.Nullable;

/** Memory that has uses and no bytes, for tests of what is remembered of them. */
public final class BareMemory extends UsedMemory {
  /** Memory that belongs to a stream, or to none. */
  public BareMemory(@Nullable DriverStream home) {
    super(new Object(), null, null, home);
  }

  @Override
  public long blockBytes() {
    return 1;
  }

  @Override
  public String describe() {
    return "bare memory";
  }

  @Override
  public void release() {}
}
