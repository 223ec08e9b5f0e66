package io.cuvette.internal.devicepool;

import io.cuvette.driver.BlockListener;
import io.cuvette.internal.block.Block;
import io.cuvette.internal.block.BlockReports;
import io.cuvette.internal.block.Face;
import io.cuvette.internal.block.Faces;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.devicepool.PoolHook.Call;
import io.cuvette.internal.order.OpenStream;
import io.cuvette.internal.session.Device;
import io.cuvette.internal.session.ThreadState;
import io.cuvette.internal.stream.DriverStream;
import io.cuvette.internal.streamcache.CachedBlock;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The listeners of a pool at one moment: the watcher of the driver's memory, and the hooks of all
 * threads and of one. Immutable.
 */
public final class MemoryHooks {
  private final @Nullable BlockListener watching;
  private final List<Registered> hooks;

  /** A hook and the only thread it sees; null for all. */
  private record Registered(PoolHook hook, @Nullable Thread thread) {
    boolean is(Object user, @Nullable Thread of) {
      return hook.user() == user && thread == of;
    }
  }

  private MemoryHooks(@Nullable BlockListener watching, List<Registered> hooks) {
    this.watching = watching;
    this.hooks = hooks;
  }

  /** Without hooks; null if nobody watches either. */
  public static @Nullable MemoryHooks none(@Nullable BlockListener watching) {
    return watching == null ? null : new MemoryHooks(watching, List.of());
  }

  public static MemoryHooks with(
      @Nullable MemoryHooks before, PoolHook hook, @Nullable Thread thread) {
    List<Registered> hooks = before == null ? new ArrayList<>() : new ArrayList<>(before.hooks);
    if (hooks.stream().anyMatch(known -> known.is(hook.user(), thread))) {
      throw new IllegalStateException("hook: %s is registered already".formatted(hook.user()));
    }
    hooks.add(new Registered(hook, thread));
    return new MemoryHooks(before == null ? null : before.watching, List.copyOf(hooks));
  }

  public static @Nullable MemoryHooks without(
      @Nullable MemoryHooks before, PoolHook hook, @Nullable Thread thread) {
    List<Registered> hooks = new ArrayList<>(Objects.requireNonNull(before).hooks);
    hooks.removeIf(known -> known.is(hook.user(), thread));
    return hooks.isEmpty()
        ? none(before.watching)
        : new MemoryHooks(before.watching, List.copyOf(hooks));
  }

  public Memory grow(MemoryPoolCore pool, OpenStream stream, long bytes, Supplier<Memory> body) {
    var before = new Call(stream.on(), bytes, bytes, 0, 0);
    each(pool, hook -> hook.beforeGrowth(before));
    Memory chunk = null;
    try {
      chunk = body.get();
      return chunk;
    } finally {
      var after = chunk == null ? before : new Call(stream.on(), bytes, bytes, chunk.address(), 0);
      keptOnlyIf(chunk, () -> each(pool, hook -> hook.afterGrowth(after)));
    }
  }

  /**
   * Gives out a block.
   *
   * @param faces read the buffer that the body gives
   */
  public Face malloc(
      MemoryPoolCore pool,
      OpenStream stream,
      long bytes,
      long rounded,
      Faces faces,
      Supplier<Face> body) {
    pool.session().state().checkOutsideHooks(pool);
    var before = new Call(stream.on(), bytes, rounded, 0, 0);
    each(pool, hook -> hook.beforeAllocation(before));
    Memory given = null;
    try {
      given = watched(faces.memory(body.get()));
      return given.face();
    } finally {
      var after = given == null ? before : block(given, bytes, rounded);
      keptOnlyIf(given, () -> each(pool, hook -> hook.afterAllocation(after)));
    }
  }

  private Memory watched(Memory given) {
    DriverStream stream = given.order().state;
    keptOnlyIf(
        given, () -> BlockReports.allocated(watching, given.block(), given.address(), stream));
    return given;
  }

  /** Frees memory whose allocation ends with the exception of a hook. */
  private static void keptOnlyIf(@Nullable Memory given, Runnable calls) {
    boolean done = false;
    try {
      calls.run();
      done = true;
    } finally {
      if (!done && given != null) {
        given.close();
      }
    }
  }

  /**
   * The memory comes back whatever a hook throws, and without Java heap for hooks. No hook is
   * called for a block that a hook frees: that could go on without end.
   */
  public void free(MemoryPoolCore pool, CachedBlock block) {
    Call call = null;
    try {
      if (!hooks.isEmpty() && !pool.session().state().isInsideHook(pool)) {
        Device device = block.arena.of.device;
        call = new Call(device, block.requestedBytes, block.blockBytes(), block.address, id(block));
        begins(pool, call);
      }
    } finally {
      try {
        freeWatched(block);
      } finally {
        if (call != null) {
          ends(pool, call);
        }
      }
    }
  }

  private void freeWatched(CachedBlock block) {
    try {
      BlockReports.freed(watching, block, block.address);
    } finally {
      block.arena.free(block);
    }
  }

  private void begins(MemoryPoolCore pool, Call freed) {
    each(pool, hook -> hook.beforeFree(freed));
  }

  private void ends(MemoryPoolCore pool, Call freed) {
    each(pool, hook -> hook.afterFree(freed));
  }

  private static Call block(Memory given, long bytes, long rounded) {
    long id = given.byteSize() == 0 ? 0 : id(given.block());
    return new Call(given.on(), bytes, rounded, given.address(), id);
  }

  private static long id(Block block) {
    return System.identityHashCode(block);
  }

  private void each(MemoryPoolCore pool, Consumer<PoolHook> call) {
    ThreadState state = pool.session().state();
    for (Registered registered : hooks) {
      if (registered.thread == null || registered.thread == state.thread) {
        state.enterHook(pool, registered.hook.user());
        try {
          call.accept(registered.hook);
        } finally {
          state.leave();
        }
      }
    }
  }
}
