package io.cuvette;

/** Something that was added and is removed by closing. Closing again does nothing. */
@FunctionalInterface
public interface Registration extends AutoCloseable {
  @Override
  void close();
}
