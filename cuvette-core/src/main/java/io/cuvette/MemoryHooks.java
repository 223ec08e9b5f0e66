package io.cuvette;

import io.cuvette.driver.BlockListener;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Who is told what a pool does at one moment: whoever watches the driver's memory, and hooks, those
 * of all threads and those of one. Immutable.
 */
final class MemoryHooks {
  private final @Nullable BlockListener watching;
  private final List<Registered> hooks;

  /** What hooks are given devices of; not null if there are hooks. */
  private final @Nullable Cuda cuda;

  /** A hook and the only thread it sees; null for all. */
  private record Registered(MemoryHook hook, @Nullable Thread thread) {}

  private MemoryHooks(
      @Nullable BlockListener watching, List<Registered> hooks, @Nullable Cuda cuda) {
    this.watching = watching;
    this.hooks = hooks;
    this.cuda = cuda;
  }

  /** Without hooks; null if nobody watches either. */
  static @Nullable MemoryHooks none(@Nullable BlockListener watching) {
    return watching == null ? null : new MemoryHooks(watching, List.of(), null);
  }

  static MemoryHooks with(
      @Nullable MemoryHooks before, MemoryHook hook, @Nullable Thread thread, Cuda cuda) {
    List<Registered> hooks = before == null ? new ArrayList<>() : new ArrayList<>(before.hooks);
    if (hooks.stream().anyMatch(known -> known.hook == hook && known.thread == thread)) {
      throw new IllegalStateException("hook: %s is registered already".formatted(hook));
    }
    hooks.add(new Registered(hook, thread));
    return new MemoryHooks(before == null ? null : before.watching, List.copyOf(hooks), cuda);
  }

  static @Nullable MemoryHooks without(
      @Nullable MemoryHooks before, MemoryHook hook, @Nullable Thread thread) {
    if (before == null) {
      return null;
    }
    List<Registered> hooks = new ArrayList<>(before.hooks);
    hooks.remove(new Registered(hook, thread));
    return hooks.isEmpty()
        ? none(before.watching)
        : new MemoryHooks(before.watching, List.copyOf(hooks), before.cuda);
  }

  BufferBase grow(MemoryPoolCore pool, OpenStream stream, long bytes, Supplier<BufferBase> body) {
    var before = new MemoryHook.Growth(CudaStream.of(stream).device(), bytes, 0);
    each(pool, hook -> hook.allocPreprocess(before));
    BufferBase chunk = null;
    try {
      chunk = body.get();
      return chunk;
    } finally {
      var after =
          chunk == null
              ? before
              : new MemoryHook.Growth(CudaStream.of(stream).device(), bytes, chunk.address());
      keptOnlyIf(chunk, () -> each(pool, hook -> hook.allocPostprocess(after)));
    }
  }

  BufferBase malloc(
      MemoryPoolCore pool, OpenStream stream, long bytes, long rounded, Supplier<BufferBase> body) {
    pool.session().state().checkOutsideHooks(pool);
    var before = new MemoryHook.Block(CudaStream.of(stream).device(), bytes, rounded, 0, 0);
    each(pool, hook -> hook.mallocPreprocess(before));
    BufferBase given = null;
    try {
      given = watched(body.get());
      return given;
    } finally {
      var after =
          given == null ? before : block(CudaStream.of(stream).device(), given, bytes, rounded);
      keptOnlyIf(given, () -> each(pool, hook -> hook.mallocPostprocess(after)));
    }
  }

  private BufferBase watched(BufferBase given) {
    keptOnlyIf(given, () -> BlockReports.allocated(watching, given));
    return given;
  }

  /** Memory that nobody will get, since a hook throws, is given back. */
  private static void keptOnlyIf(@Nullable BufferBase given, Runnable calls) {
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
   * The memory comes back whatever a hook throws, and without Java heap for hooks. A block that a
   * hook gives back is not told: its hooks could give back without end.
   */
  void free(PooledBlock block) {
    MemoryPoolCore pool = block.arena.pool;
    MemoryHook.Block call = null;
    try {
      if (cuda != null && !pool.session().state().isInsideHook(pool)) {
        call =
            new MemoryHook.Block(
                cuda.device(block.arena.devicePool.device.id()),
                block.requestedBytes,
                block.blockBytes(),
                block.address,
                id(block));
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

  private void freeWatched(PooledBlock block) {
    try {
      BlockReports.freed(watching, block, block.address);
    } finally {
      block.arena.freeOrdered(block);
    }
  }

  private void begins(MemoryPoolCore pool, MemoryHook.Block freed) {
    each(pool, hook -> hook.freePreprocess(freed));
  }

  private void ends(MemoryPoolCore pool, MemoryHook.Block freed) {
    each(pool, hook -> hook.freePostprocess(freed));
  }

  private static MemoryHook.Block block(
      CudaDevice device, BufferBase given, long bytes, long rounded) {
    long id = given.byteSize() == 0 ? 0 : id(given.lifetime());
    return new MemoryHook.Block(device, bytes, rounded, given.address(), id);
  }

  private static long id(BlockLifetime lifetime) {
    return System.identityHashCode(lifetime);
  }

  private void each(MemoryPoolCore pool, Consumer<MemoryHook> call) {
    ThreadState state = pool.session().state();
    for (Registered registered : hooks) {
      if (registered.thread == null || registered.thread == state.thread) {
        state.enterHook(pool, registered.hook);
        try {
          call.accept(registered.hook);
        } finally {
          state.leave();
        }
      }
    }
  }
}
