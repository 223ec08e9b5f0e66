package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.AllocationHandle;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.EventDescriptor;
import io.cuvette.EventOptions;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.MemoryResource;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Forgetting;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * What an importer uses for the last time is not found forgotten before the call ends: the handle
 * that came, the pool, the buffer and the event.
 */
class CollectorBesideImportTest extends TwoProcesses {
  /** Enough for the operation to be compiled, which is when its objects are seen as unused. */
  private static final int WARM_UP = 300;

  private static final Duration PATIENCE = Duration.ofSeconds(40);

  @TempDir private Path folder;

  /** What the exporter shares, and the two ends of a channel. */
  private record Shared(
      AllocationHandle handle,
      BufferDescriptor pooled,
      BufferDescriptor plain,
      EventDescriptor event,
      IpcChannel ours,
      IpcChannel theirs) {

    DeviceMemoryResource received(Cuda cuda) {
      ours.send(handle);
      return DeviceMemoryResource.fromAllocationHandle(
          cuda.device(0), theirs.receiveAllocationHandle(PATIENCE));
    }

    DeviceBuffer imported(Cuda cuda) {
      return DeviceMemoryResource.fromAllocationHandle(cuda.device(0), handle)
          .importBuffer(pooled, cuda.currentStream());
    }
  }

  @FunctionalInterface
  private interface Use {
    void of(Shared shared, Cuda cuda);
  }

  private enum Operation {
    HANDLE_THAT_CAME("memPoolImportFromShareableHandle", Shared::received),
    POOL("memPoolImportPointer", Shared::imported),
    POOL_OF_A_HANDLE_THAT_CAME(
        "memPoolImportPointer",
        (shared, cuda) -> shared.received(cuda).importBuffer(shared.pooled())),
    BUFFER(
        "memsetD8Async",
        (shared, cuda) -> shared.imported(cuda).fill((byte) 1, cuda.currentStream())),
    BUFFER_COPIED(
        "memcpyAsync",
        (shared, cuda) -> shared.imported(cuda).copyTo(MemorySegment.ofArray(new byte[1000]))),
    PLAIN_BUFFER(
        "memsetD8Async",
        (shared, cuda) ->
            cuda.device(0).importBuffer(shared.plain()).fill((byte) 1, cuda.currentStream())),
    EVENT(
        "streamWaitEvent",
        (shared, cuda) -> cuda.currentStream().waitFor(cuda.device(0).importEvent(shared.event()))),
    EVENT_RECORDED(
        "eventRecord", (shared, cuda) -> cuda.device(0).importEvent(shared.event()).record());

    private final String call;
    private final Use use;

    Operation(String call, Use use) {
      this.call = call;
      this.use = use;
    }
  }

  @ParameterizedTest
  @EnumSource
  void whatAnImporterUses_isNotFoundForgottenBeforeTheCallEnds(Operation operation)
      throws Exception {
    long before = OpenFiles.count();
    Path socket = folder.resolve("socket");
    try (DeviceMemoryResource resource = shared();
        DeviceBuffer buffer = resource.allocate(1000);
        var plain = MemoryResource.direct().allocate(1000, here().nullStream());
        var event = here().createEvent(EventOptions.ORDER_ONLY.withInterprocess(true));
        IpcListener listener = IpcListener.open(socket);
        IpcChannel ours = IpcChannel.connect(socket, PATIENCE);
        IpcChannel theirs = listener.accept(PATIENCE)) {
      Shared shared =
          new Shared(
              resource.allocationHandle(),
              buffer.descriptor(),
              plain.descriptor(),
              event.descriptor(),
              ours,
              theirs);
      use(operation, shared);
    }
    here().synchronize(); // then the memory that was shared is freed
    assertThat(Forgetting.collectUntil(() -> OpenFiles.count() <= before)).isTrue();
  }

  private static void use(Operation operation, Shared shared) throws Exception {
    SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    ScriptedDriver driver = new ScriptedDriver();
    CudaOptions options =
        CudaOptions.DEFAULTS.withDriver(driver.over(simulator)).withLeakListener(_ -> {});
    try (Cuda cuda = Cuda.open(options)) {
      for (int i = 0; i < WARM_UP; i++) {
        operation.use.of(shared, cuda);
      }
      Forgetting.collectAll(); // what is imported still would be given again, without a call
      cuda.leaksFound();
      Hold hold = driver.hold(operation.call);
      FutureTask<?> working = new FutureTask<>(() -> operation.use.of(shared, cuda), null);
      Thread worker = Thread.ofPlatform().start(working);
      hold.awaitBegun();
      Forgetting.collectAll();
      cuda.leaksFound();
      hold.release();
      worker.join();
      working.get(); // what is gone would fail it
    }
    assertThat(simulator.report().isEmpty()).as("%s", simulator.report()).isTrue();
  }
}
