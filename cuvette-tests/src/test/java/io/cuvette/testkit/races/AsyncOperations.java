package io.cuvette.testkit.races;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.AsyncPoolOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryLimit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Function;

/** Operations of {@code AsyncMemoryPool}. Stateless. */
final class AsyncOperations {
  private static final MemoryLimit LIMIT = MemoryLimit.ofBytes(1L << 20);
  private static final AsyncPoolChoice NEW = AsyncPoolChoice.ofNew(0);

  private AsyncOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addConstructors(all);
    addAllocations(all);
    addNumbers(all);
    return all;
  }

  private static void addConstructors(List<Operation> all) {
    AsyncPoolOptions options = AsyncPoolOptions.DEFAULTS;
    all.add(made("Cuda", stage -> new AsyncMemoryPool(stage.cuda)));
    all.add(made("Cuda, AsyncPoolChoice", stage -> new AsyncMemoryPool(stage.cuda, NEW)));
    all.add(
        made(
            "Cuda, AsyncPoolChoice, AsyncPoolOptions",
            stage -> new AsyncMemoryPool(stage.cuda, NEW, options)));
    all.add(made("Cuda, List", stage -> new AsyncMemoryPool(stage.cuda, choices(stage))));
    all.add(
        made(
            "Cuda, List, AsyncPoolOptions",
            stage -> new AsyncMemoryPool(stage.cuda, choices(stage), options)));
  }

  private static List<AsyncPoolChoice> choices(Stage stage) {
    return Collections.nCopies(stage.cuda.deviceCount(), NEW);
  }

  private static Operation made(String parameters, Function<Stage, AsyncMemoryPool> make) {
    return Operation.of(
        "new AsyncMemoryPool(" + parameters + ")", stage -> () -> make.apply(stage).close());
  }

  private static void addAllocations(List<Operation> all) {
    all.add(pool("allocate(long)", pool -> pool.allocate(Stage.BYTES).close()));
    all.add(
        onStream(
            "allocate(long, CudaStream)",
            (pool, stream) -> pool.allocate(Stage.BYTES, stream).close()));
    all.add(pool("freeAllBlocks()", AsyncMemoryPool::freeAllBlocks));
    all.add(onStream("freeAllBlocks(CudaStream)", AsyncMemoryPool::freeAllBlocks));
    all.add(pool("close()", AsyncMemoryPool::close));
  }

  private static void addNumbers(List<Operation> all) {
    all.add(pool("usedBytes()", AsyncMemoryPool::usedBytes));
    all.add(pool("freeBytes()", AsyncMemoryPool::freeBytes));
    all.add(pool("totalBytes()", AsyncMemoryPool::totalBytes));
    all.add(pool("liveBytes()", AsyncMemoryPool::liveBytes));
    all.add(pool("attributes()", pool -> pool.attributes().usedMemCurrent()));
    all.add(
        onDevice(
            "attributes(CudaDevice)", (pool, s) -> pool.attributes(s.device).reservedMemHigh()));
    all.add(onDevice("handle(CudaDevice)", (pool, s) -> pool.handle(s.device)));
    all.add(pool("limit()", AsyncMemoryPool::limit));
    all.add(onDevice("limit(CudaDevice)", (pool, s) -> pool.limit(s.device)));
    all.add(pool("setLimit(MemoryLimit)", pool -> pool.setLimit(LIMIT)));
    all.add(
        onDevice("setLimit(CudaDevice, MemoryLimit)", (pool, s) -> pool.setLimit(s.device, LIMIT)));
  }

  private static Operation pool(String method, Consumer<AsyncMemoryPool> body) {
    return onDevice(method, (pool, _) -> body.accept(pool));
  }

  private static Operation onDevice(String method, BiConsumer<AsyncMemoryPool, Stage> body) {
    return Operation.of(
        "AsyncMemoryPool." + method,
        stage -> {
          AsyncMemoryPool pool = stage.asyncPool();
          pool.allocate(Stage.BYTES).close();
          return () -> body.accept(pool, stage);
        });
  }

  private static Operation onStream(String method, BiConsumer<AsyncMemoryPool, CudaStream> body) {
    return Operation.of(
        "AsyncMemoryPool." + method,
        stage -> {
          AsyncMemoryPool pool = stage.asyncPool();
          CudaStream stream = stage.stream();
          pool.allocate(Stage.BYTES, stream).close();
          return () -> body.accept(pool, stream);
        });
  }
}
