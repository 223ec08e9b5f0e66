package io.cuvette.testkit.races;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.Scope;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/** Operations of {@code Cuda}. Stateless. */
final class CudaOperations {
  private CudaOperations() {}

  static List<Operation> all() {
    List<Operation> all = new ArrayList<>();
    addQuestions(all);
    addCurrent(all);
    addAllocations(all);
    return all;
  }

  private static void addQuestions(List<Operation> all) {
    all.add(
        Operation.of(
            "Cuda.deviceByPciBusId(String)",
            stage -> {
              String id = stage.device.pciBusId();
              return () -> stage.cuda.deviceByPciBusId(id);
            }));
    all.add(
        Operation.of(
            "Cuda.deviceOf(long)",
            stage -> {
              long address = stage.foreign();
              return () -> stage.cuda.deviceOf(address);
            }));
    all.add(cuda("driverVersion()", Cuda::driverVersion));
    all.add(cuda("runtimeVersion()", Cuda::runtimeVersion));
    all.add(cuda("leaksFound()", Cuda::leaksFound));
    all.add(cuda("openObjects()", Cuda::openObjects));
    all.add(Operation.of("Cuda.isAvailable()", _ -> Cuda::isAvailable));
    all.add(cuda("close()", Cuda::close));
    all.add(simulatedOpen("Cuda.open()"));
    all.add(simulatedOpen("Cuda.open(CudaOptions)"));
  }

  /** Another one: what is opened shares nothing with what is closed beside it. */
  private static Operation simulatedOpen(String method) {
    return Operation.simulated(method, _ -> () -> Cuda.open(CudaOptions.simulated()).close());
  }

  private static void addCurrent(List<Operation> all) {
    all.add(cuda("setCurrentDevice(CudaDevice)", cuda -> cuda.setCurrentDevice(cuda.device(0))));
    all.add(cuda("currentStream()", Cuda::currentStream));
    all.add(cuda("currentStream(CudaDevice)", cuda -> cuda.currentStream(cuda.device(0))));
    all.add(
        Operation.of(
            "Cuda.setCurrentStream(CudaStream)",
            stage -> {
              CudaStream stream = stage.stream();
              return () -> {
                stage.cuda.setCurrentStream(stream);
                stage.cuda.setCurrentStream(stage.device.nullStream());
              };
            }));
    all.add(
        withPool(
            "setAllocator(MemoryResource)",
            (cuda, pool) -> {
              cuda.setAllocator(pool);
              cuda.setAllocator(cuda.defaultMemoryPool());
            }));
    all.add(
        withPool(
            "useAllocator(MemoryResource)",
            (cuda, pool) -> {
              try (Scope _ = cuda.useAllocator(pool)) {
                cuda.allocate(Stage.BYTES).close();
              }
            }));
    all.add(
        Operation.of(
            "Cuda.setPinnedAllocator(PinnedAllocator)",
            stage -> {
              PinnedMemoryPool pool = stage.pinnedPool();
              return () -> {
                stage.cuda.setPinnedAllocator(pool);
                stage.cuda.setPinnedAllocator(stage.cuda.defaultPinnedMemoryPool());
              };
            }));
  }

  private static void addAllocations(List<Operation> all) {
    all.add(cuda("allocate(long)", cuda -> cuda.allocate(Stage.BYTES).close()));
    all.add(
        Operation.of(
            "Cuda.allocate(long, CudaStream)",
            stage -> {
              CudaStream stream = stage.stream();
              return () -> stage.cuda.allocate(Stage.BYTES, stream).close();
            }));
    all.add(cuda("allocateManaged(long)", cuda -> cuda.allocateManaged(Stage.BYTES).close()));
    all.add(cuda("allocatePinned(long)", cuda -> cuda.allocatePinned(Stage.BYTES).close()));
    all.add(
        Operation.of(
            "Cuda.registerHost(MemorySegment)",
            stage -> {
              MemorySegment memory = Arena.ofAuto().allocate(Stage.BYTES);
              return () -> stage.cuda.registerHost(memory).close();
            }));
    all.add(
        Operation.of(
            "Cuda.wrap(long, long, Object)",
            stage -> {
              long address = stage.foreign();
              return () -> stage.cuda.wrap(address, Stage.BYTES, null).close();
            }));
  }

  /** What a Cuda does with a pool. */
  interface WithPool {
    void run(Cuda cuda, MemoryPool pool);
  }

  private static Operation withPool(String method, WithPool body) {
    return Operation.of(
        "Cuda." + method,
        stage -> {
          MemoryPool pool = stage.pool();
          return () -> body.run(stage.cuda, pool);
        });
  }

  private static Operation cuda(String method, Consumer<Cuda> body) {
    return Operation.of(
        "Cuda." + method,
        stage -> {
          Cuda cuda = stage.cuda;
          return () -> body.accept(cuda);
        });
  }
}
