package io.cuvette;

import io.cuvette.internal.channel.PoolHandle;
import java.util.Objects;
import java.util.Optional;
import java.util.UUID;

/**
 * What another process imports a memory pool by: a descriptor of the operating system and, if it
 * has one, the pool's UUID. It owns its descriptor and closes it. A process that has the descriptor
 * can use all memory that the pool exports: send it to no other. Thread-safe.
 *
 * <p>The collector closes the descriptor of a handle that is forgotten, unless the program knows
 * the number, from {@link #of(int)} or {@link #descriptor()}: then it stays open until the process
 * ends.
 */
public final class AllocationHandle implements AutoCloseable {
  private final PoolHandle core;

  AllocationHandle(PoolHandle core) {
    this.core = core;
  }

  /** The handle as the engine knows it. */
  PoolHandle core() {
    return core;
  }

  /**
   * Takes ownership of a descriptor that was not received by an {@link IpcChannel}; closing the
   * handle closes it. The pool has no UUID until it is registered under one.
   *
   * @param descriptor the descriptor of the pool, open in this process
   * @return the handle
   * @throws IllegalArgumentException if the number is negative or not open in this process
   * @throws UnsupportedOperationException where descriptors cannot be passed
   */
  public static AllocationHandle of(int descriptor) {
    return new AllocationHandle(PoolHandle.of(descriptor, null));
  }

  /**
   * Takes ownership of a descriptor of a pool whose UUID is known.
   *
   * @param descriptor the descriptor of the pool, open in this process
   * @param uuid the UUID of the pool
   * @return the handle
   * @see #of(int)
   */
  public static AllocationHandle of(int descriptor, UUID uuid) {
    Objects.requireNonNull(uuid, "uuid");
    return new AllocationHandle(PoolHandle.of(descriptor, uuid));
  }

  /**
   * {@return the number of the descriptor} It stays this handle's to close; what must live longer
   * takes a {@link #duplicate()}.
   *
   * @throws IllegalStateException if the handle is closed
   */
  public int descriptor() {
    return core.descriptor();
  }

  /** {@return the identity of the pool, the same in all processes; empty for a raw descriptor} */
  public Optional<UUID> uuid() {
    return core.uuid();
  }

  /**
   * {@return another handle of the same pool, with its own descriptor (fcntl F_DUPFD_CLOEXEC)}
   *
   * @throws IllegalStateException if the handle is closed
   */
  public AllocationHandle duplicate() {
    return new AllocationHandle(core.duplicate());
  }

  /** {@return whether the handle is closed} */
  public boolean isClosed() {
    return core.isClosed();
  }

  /** Closes the descriptor (close). Does nothing the second time. */
  @Override
  public void close() {
    core.close();
  }

  @Override
  public String toString() {
    return core.toString();
  }
}
