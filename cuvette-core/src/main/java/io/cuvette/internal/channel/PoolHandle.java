package io.cuvette.internal.channel;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.DescriptorCalls.Sameness;
import io.cuvette.internal.lifetime.Gate;
import java.lang.ref.Reference;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * A descriptor by which a pool is imported, as the engine knows it, and what the pool is known by.
 * Thread-safe.
 */
public final class PoolHandle implements AutoCloseable {
  private final DescriptorCalls calls;
  private final OwnedDescriptor descriptor;
  private final AtomicReference<@Nullable UUID> uuid;

  /** Nobody passes the number on while it is being closed: the system gives it to the next file. */
  private final Gate gate = new Gate();

  private final AtomicBoolean closed = new AtomicBoolean();

  public PoolHandle(DescriptorCalls calls, int descriptor, @Nullable UUID uuid) {
    this.calls = calls;
    this.uuid = new AtomicReference<>(uuid);
    this.descriptor = new OwnedDescriptor(this, calls, Descriptors.checkNumber(descriptor));
  }

  /** Takes over a descriptor, which whoever made it knows. */
  public static PoolHandle of(int descriptor, @Nullable UUID uuid) {
    Descriptors.checkNumber(descriptor);
    DescriptorCalls calls = Descriptors.require("AllocationHandle");
    int open = Descriptors.checkOpen(calls, descriptor);
    return new PoolHandle(calls, open, uuid);
  }

  /** A handle of its own for a raw descriptor. */
  public static PoolHandle duplicate(int descriptor) {
    Descriptors.checkNumber(descriptor);
    DescriptorCalls calls = Descriptors.require("fromAllocationHandle");
    Descriptors.checkOpen(calls, descriptor);
    return own(calls, calls.duplicate(descriptor), null);
  }

  /** The number of the descriptor, which others know from now on. */
  public int descriptor() {
    checkOpen();
    descriptor.expose();
    return descriptor.number();
  }

  /** The identity of the pool, the same in all processes; empty for a raw descriptor. */
  public Optional<UUID> uuid() {
    return Optional.ofNullable(uuid.get());
  }

  /** Another handle of the same pool, with a descriptor of its own. */
  public PoolHandle duplicate() {
    return own(calls, duplicateDescriptor(), uuid.get());
  }

  /** A handle of a descriptor, which is closed if there is no heap for it. */
  public static PoolHandle own(DescriptorCalls calls, int descriptor, @Nullable UUID uuid) {
    try {
      PoolHandle handle = new PoolHandle(calls, descriptor, uuid);
      handle.own();
      return handle;
    } catch (RuntimeException | Error e) {
      Closing.closeAfter(e, calls, descriptor);
      throw e;
    }
  }

  /** Nobody else has the number from now on. */
  public void own() {
    descriptor.own();
  }

  /** Whether the handle was closed. */
  public boolean isClosed() {
    return closed.get();
  }

  /** Closes the descriptor (close). Does nothing the second time. */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      try {
        gate.shut();
      } catch (Error e) {
        closed.set(false); // no heap; it can be closed again
        throw e;
      }
      descriptor.close();
    }
  }

  @Override
  public String toString() {
    return "AllocationHandle[descriptor=%d, uuid=%s]%s"
        .formatted(descriptor.number(), uuid.get(), isClosed() ? " (closed)" : "");
  }

  /** A descriptor of the same pool that is the caller's. */
  public int duplicateDescriptor() {
    if (!gate.enter()) {
      throw isClosedNow();
    }
    try {
      return calls.duplicate(descriptor.number());
    } finally {
      gate.leave();
      Reference.reachabilityFence(this);
    }
  }

  /** Does something short with the descriptor, which cannot be closed meanwhile. */
  public <T> T use(IntFunction<T> work) {
    if (!gate.enter()) {
      throw isClosedNow();
    }
    try {
      return work.apply(descriptor.number());
    } finally {
      gate.leave();
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Whether another handle is of the same pool. A UUID is what some process claims, so it counts
   * only where the system cannot compare whether two descriptors are of one file.
   */
  public boolean isSamePool(PoolHandle other) {
    Sameness files;
    try {
      files = use(own -> other.use(theirs -> calls.compare(own, theirs)));
    } catch (IllegalStateException e) {
      return false; // closed
    }
    UUID known = uuid.get();
    return files == Sameness.SAME
        || (files == Sameness.UNKNOWN && known != null && known.equals(other.uuid.get()));
  }

  /** Gives the pool an identity if it has none. */
  public void identify(UUID as) {
    if (!uuid.compareAndSet(null, as)) {
      checkIdentity(as);
    }
  }

  /**
   * Checks that the pool has this identity, or none.
   *
   * @throws IllegalStateException if it has another
   */
  public void checkIdentity(UUID as) {
    UUID has = uuid.get();
    if (has != null && !has.equals(as)) {
      throw new IllegalStateException(
          "uuid: %s (expected: %s, which the pool has already)".formatted(as, has));
    }
  }

  public void checkOpen() {
    if (closed.get()) {
      throw isClosedNow();
    }
  }

  private IllegalStateException isClosedNow() {
    return new IllegalStateException(this + " is closed");
  }
}
