package io.cuvette.driver;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.function.LongConsumer;

/**
 * What exchanging data with other libraries in the process needs of the machine: reading and
 * writing structures at addresses, calling a function that they name, and being called by them.
 * Addresses are taken on trust. Found with {@link ServiceLoader}. Thread-safe.
 */
public interface ForeignCalls {

  /** {@return the calls of this machine; empty if no module provides them} */
  static Optional<ForeignCalls> find() {
    return ServiceLoader.load(ForeignCalls.class, ForeignCalls.class.getClassLoader()).stream()
        .map(ServiceLoader.Provider::get)
        .findFirst();
  }

  /**
   * {@return memory at an address, for as long as whoever owns it keeps it}
   *
   * @param address the first byte
   * @param bytes how many
   */
  MemorySegment memory(long address, long bytes);

  /**
   * {@return memory at an address that cannot be used once an arena is closed}
   *
   * @param address the first byte
   * @param bytes how many
   * @param arena the arena
   */
  MemorySegment memory(long address, long bytes, Arena arena);

  /**
   * Keeps the arena of memory from being closed: whoever tries gets the {@link
   * IllegalStateException} of memory that is in use. A sleeping thread does so.
   *
   * @param memory the memory, which threads other than this one can access
   * @return lets the arena be closed, from when it returns; does nothing the second time
   * @throws IllegalStateException if the arena is closed
   */
  Runnable holdArena(MemorySegment memory);

  /**
   * {@return the address of a C function {@code void (*)(void *)}, never freed, that passes its
   * argument on} It may be called on any thread, also on one that the JVM does not know. What the
   * receiver throws goes to the log.
   *
   * @param receiver gets the argument; it must not wait
   */
  long callback(LongConsumer receiver);

  /**
   * Calls a C function {@code void (*)(void *)}.
   *
   * @param function its address
   * @param argument the argument
   */
  void call(long function, long argument);
}
