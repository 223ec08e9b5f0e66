package io.cuvette.testkit.races;

import io.cuvette.Buffer;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLimit;
import io.cuvette.Scope;
import java.time.Duration;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/** What can be done with an elastic pool. Stateless. */
final class ElasticOperations {
  private static final MemoryLimit LIMIT = MemoryLimit.ofBytes(64L << 20);
  private static final MemoryHook HOOK = new MemoryHook() {};

  private ElasticOperations() {}

  static List<Operation> all() {
    return List.of(
        Operation.of(
            "new ElasticMemoryPool(Cuda)", s -> () -> new ElasticMemoryPool(s.cuda).close()),
        Operation.of(
            "new ElasticMemoryPool(Cuda, ElasticPoolOptions)",
            s -> () -> new ElasticMemoryPool(s.cuda, ElasticPoolOptions.DEFAULTS).close()),
        of("allocate(long)", pool -> pool.allocate(Stage.BYTES).close()),
        onStage(
            "allocate(long, CudaStream)",
            (pool, s) -> pool.allocate(Stage.BYTES, s.device.nullStream()).close()),
        Operation.simulated(
            "ElasticMemoryPool.export(Buffer)",
            stage -> {
              var options = ElasticPoolOptions.DEFAULTS.withExportable(true);
              ElasticMemoryPool pool =
                  stage.ended(Closer.POOL, new ElasticMemoryPool(stage.cuda, options));
              Buffer buffer = stage.ended(Closer.BUFFER, pool.allocate(Stage.BYTES));
              return () -> pool.export(buffer).close();
            }),
        of("freeAllBlocks()", ElasticMemoryPool::freeAllBlocks),
        onStage("freeAllBlocks(CudaDevice)", (pool, s) -> pool.freeAllBlocks(s.device)),
        of("trim(long)", pool -> pool.trim(0)),
        of("trim(Duration)", pool -> pool.trim(Duration.ZERO)),
        of("close()", ElasticMemoryPool::close),
        of("usedBytes()", ElasticMemoryPool::usedBytes),
        of("freeBytes()", ElasticMemoryPool::freeBytes),
        of("totalBytes()", ElasticMemoryPool::totalBytes),
        of("freeBlocks()", ElasticMemoryPool::freeBlocks),
        of("stats()", ElasticMemoryPool::stats),
        onStage("stats(CudaDevice)", (pool, s) -> pool.stats(s.device)),
        of("pages()", ElasticMemoryPool::pages),
        onStage("pages(CudaDevice)", (pool, s) -> pool.pages(s.device)),
        of("fragmentation()", ElasticMemoryPool::fragmentation),
        onStage("fragmentation(CudaDevice)", (pool, s) -> pool.fragmentation(s.device)),
        onStage("resetPeaks(CudaDevice)", (pool, s) -> pool.resetPeaks(s.device)),
        of("limit()", ElasticMemoryPool::limit),
        onStage("limit(CudaDevice)", (pool, s) -> pool.limit(s.device)),
        of("limitBytes()", ElasticMemoryPool::limitBytes),
        of("assertConsistent()", ElasticMemoryPool::assertConsistent),
        of("setLimit(MemoryLimit)", pool -> pool.setLimit(LIMIT)),
        onStage("setLimit(CudaDevice, MemoryLimit)", (pool, s) -> pool.setLimit(s.device, LIMIT)),
        of("addHook(MemoryHook)", pool -> pool.addHook(HOOK).close()),
        of(
            "useHook(MemoryHook)",
            pool -> {
              try (Scope _ = pool.useHook(HOOK)) {
                pool.allocate(Stage.BYTES).close();
              }
            }),
        of(
            "addPressureListener(PressureListener)",
            pool -> pool.addPressureListener((_, _) -> 0).close()));
  }

  private static Operation of(String method, Consumer<ElasticMemoryPool> body) {
    return onStage(method, (pool, _) -> body.accept(pool));
  }

  private static Operation onStage(String method, BiConsumer<ElasticMemoryPool, Stage> body) {
    return Operation.of(
        "ElasticMemoryPool." + method,
        stage -> {
          ElasticMemoryPool pool = stage.ended(Closer.POOL, new ElasticMemoryPool(stage.cuda));
          pool.allocate(Stage.BYTES).close();
          return () -> body.accept(pool, stage);
        });
  }
}
