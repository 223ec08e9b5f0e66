package io.cuvette.internal.elastic;

import io.cuvette.internal.streamcache.CachedBlock;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Blocks that threads left to be freed, as they found the lock taken. Thread-safe, lock-free. */
final class LeftFrees {
  private final AtomicReference<@Nullable CachedBlock> head = new AtomicReference<>();

  void leave(CachedBlock block) {
    CachedBlock next;
    do {
      next = head.get();
      block.next = next;
    } while (!head.compareAndSet(next, block));
  }

  /** Takes what was left so far; what is left meanwhile stays. */
  void takeAll(Consumer<CachedBlock> each) {
    if (head.get() != null) {
      CachedBlock block = head.getAndSet(null);
      while (block != null) {
        CachedBlock next = (CachedBlock) block.next;
        block.next = null;
        each.accept(block);
        block = next;
      }
    }
  }
}
