package io.cuvette.testkit.races;

import io.cuvette.CudaStream;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PinnedPoolOptions;
import io.cuvette.PoolOptions;
import io.cuvette.Registration;
import io.cuvette.Scope;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** Operations of {@code MemoryPool} and {@code PinnedMemoryPool}. Stateless. */
final class PoolOperations {
  private static final MemoryLimit LIMIT = MemoryLimit.ofBytes(1L << 20);
  private static final MemoryHook HOOK = new MemoryHook() {};

  private PoolOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addAllocations(all);
    addNumbers(all);
    addListeners(all);
    addPinned(all);
    return all;
  }

  private static void addAllocations(List<Operation> all) {
    all.add(Operation.of("new MemoryPool(Cuda)", s -> () -> new MemoryPool(s.cuda).close()));
    all.add(
        Operation.of(
            "new MemoryPool(Cuda, PoolOptions)",
            s -> () -> new MemoryPool(s.cuda, PoolOptions.DEFAULTS).close()));
    all.add(pool("allocate(long)", pool -> pool.allocate(Stage.BYTES).close()));
    all.add(
        onStream(
            "allocate(long, CudaStream)",
            (pool, stream) -> pool.allocate(Stage.BYTES, stream).close()));
    all.add(filled("freeAllBlocks()", MemoryPool::freeAllBlocks));
    all.add(filled("trim(long)", pool -> pool.trim(0)));
    all.add(filled("trim(Duration)", pool -> pool.trim(Duration.ZERO)));
    all.add(onStream("freeAllBlocks(CudaStream)", MemoryPool::freeAllBlocks));
    all.add(
        Operation.of(
            "MemoryPool.freeAllBlocks(CudaDevice)",
            stage -> {
              MemoryPool pool = stage.pool();
              pool.allocate(Stage.BYTES).close();
              return () -> pool.freeAllBlocks(stage.device);
            }));
    all.add(pool("close()", MemoryPool::close));
  }

  private static void addNumbers(List<Operation> all) {
    all.add(filled("usedBytes()", MemoryPool::usedBytes));
    all.add(filled("freeBytes()", MemoryPool::freeBytes));
    all.add(filled("totalBytes()", MemoryPool::totalBytes));
    all.add(filled("freeBlocks()", MemoryPool::freeBlocks));
    all.add(filled("stats()", MemoryPool::stats));
    all.add(onDevice("stats(CudaDevice)", (pool, stage) -> pool.stats(stage.device)));
    all.add(onDevice("resetPeaks(CudaDevice)", (pool, stage) -> pool.resetPeaks(stage.device)));
    all.add(filled("limit()", MemoryPool::limit));
    all.add(onDevice("limit(CudaDevice)", (pool, stage) -> pool.limit(stage.device)));
    all.add(filled("limitBytes()", MemoryPool::limitBytes));
    all.add(filled("assertConsistent()", MemoryPool::assertConsistent));
    all.add(filled("setLimit(MemoryLimit)", pool -> pool.setLimit(LIMIT)));
    all.add(
        onDevice("setLimit(CudaDevice, MemoryLimit)", (pool, s) -> pool.setLimit(s.device, LIMIT)));
  }

  private static void addListeners(List<Operation> all) {
    all.add(pool("addHook(MemoryHook)", pool -> pool.addHook(HOOK).close()));
    all.add(
        pool(
            "useHook(MemoryHook)",
            pool -> {
              try (Scope _ = pool.useHook(HOOK)) {
                pool.allocate(Stage.BYTES).close();
              }
            }));
    all.add(
        pool(
            "addPressureListener(PressureListener)",
            pool -> pool.addPressureListener((_, _) -> 0).close()));
    all.add(
        Operation.of(
            "Registration.close()",
            stage -> {
              Registration registration = stage.pool().addHook(HOOK);
              return registration::close;
            }));
  }

  private static void addPinned(List<Operation> all) {
    all.add(
        Operation.of(
            "new PinnedMemoryPool(Cuda)", s -> () -> new PinnedMemoryPool(s.cuda).close()));
    all.add(
        Operation.of(
            "new PinnedMemoryPool(Cuda, PinnedPoolOptions)",
            s -> () -> new PinnedMemoryPool(s.cuda, PinnedPoolOptions.DEFAULTS).close()));
    all.add(pinned("allocate(long)", pool -> pool.allocate(Stage.BYTES).close()));
    all.add(pinned("freeAllBlocks()", PinnedMemoryPool::freeAllBlocks));
    all.add(pinned("assertConsistent()", PinnedMemoryPool::assertConsistent));
    all.add(pinned("usedBytes()", PinnedMemoryPool::usedBytes));
    all.add(pinned("freeBytes()", PinnedMemoryPool::freeBytes));
    all.add(pinned("totalBytes()", PinnedMemoryPool::totalBytes));
    all.add(pinned("freeBlocks()", PinnedMemoryPool::freeBlocks));
    all.add(pinned("stats()", PinnedMemoryPool::stats));
    all.add(pinned("limit()", PinnedMemoryPool::limit));
    all.add(pinned("setLimit(MemoryLimit)", pool -> pool.setLimit(LIMIT)));
    all.add(pinned("close()", PinnedMemoryPool::close));
  }

  private static Operation pool(String method, Consumer<MemoryPool> body) {
    return Operation.of(
        "MemoryPool." + method,
        stage -> {
          MemoryPool pool = stage.pool();
          return () -> body.accept(pool);
        });
  }

  /** A pool that has held memory. */
  private static Operation filled(String method, Consumer<MemoryPool> body) {
    return onDevice(method, (pool, _) -> body.accept(pool));
  }

  private static Operation onDevice(String method, BiConsumer<MemoryPool, Stage> body) {
    return Operation.of(
        "MemoryPool." + method,
        stage -> {
          MemoryPool pool = stage.pool();
          pool.allocate(Stage.BYTES).close();
          return () -> body.accept(pool, stage);
        });
  }

  private static Operation onStream(String method, BiConsumer<MemoryPool, CudaStream> body) {
    return Operation.of(
        "MemoryPool." + method,
        stage -> {
          MemoryPool pool = stage.pool();
          CudaStream stream = stage.stream();
          pool.allocate(Stage.BYTES, stream).close();
          return () -> body.accept(pool, stream);
        });
  }

  private static Operation pinned(String method, Consumer<PinnedMemoryPool> body) {
    return Operation.of(
        "PinnedMemoryPool." + method,
        stage -> {
          PinnedMemoryPool pool = stage.pinnedPool();
          pool.allocate(Stage.BYTES).close();
          return () -> body.accept(pool);
        });
  }
}
