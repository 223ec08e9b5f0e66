package io.cuvette.internal.kernel;

import org.jspecify.annotations.Nullable;

/** Gives an argument of a launch as the engine takes it: the memory of a buffer. Stateless. */
@FunctionalInterface
public interface ArgumentReader {

  /** The memory of a buffer, and anything else as it is. */
  @Nullable Object read(@Nullable Object argument);
}
