package io.cuvette.testkit.device;

import static io.cuvette.testkit.support.Sizes.MIB;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaGraph;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GrowableBuffer;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.StreamOptions;
import io.cuvette.driver.BlockListener;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.OnDevice;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.FirstDevice;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** What fails, is refused or left open on one device is undone there, whichever is the first. */
class SecondDeviceFailuresTest {
  private static final int BYTES = 4096;

  /** Lets a call do its work, and report that the device is lost. */
  private static void breakAfter(ScriptedDriver script, String name) {
    script.answer(
        name,
        call -> {
          Object _ = call.proceed();
          script.unscript(name);
          throw new CudaException(CudaStatus.ILLEGAL_ADDRESS, name, "scripted by the test");
        });
  }

  /** Refuses all blocks, and notes the device of work of others. */
  private record Refusing(List<Integer> devices) implements BlockListener {
    @Override
    public void blockAllocated(Block block, int device, long stream) {
      devices.add(device);
      throw new IllegalStateException("refused on purpose");
    }

    @Override
    public void blockAllocated(Block block) {}

    @Override
    public void blockFreed(Block block) {}

    @Override
    public void usedElsewhere(long address, long bytes, int device, long stream) {
      devices.add(device);
    }

    @Override
    public void hostAccess(long address, long bytes, boolean writes) {}
  }

  @CudaTest(devices = 2, simulatedOnly = true, sanitized = false)
  void whoeverWatchesMemory_isToldItsDevice_andWhatIsRefusedGoesBackThere(Subject subject) {
    ScriptedDriver script = new ScriptedDriver();
    List<Integer> told = new ArrayList<>();
    script.answer("blockListener", _ -> new Refusing(told));
    Cuda cuda = subject.open(options -> options.withDecorator(script::over));
    CudaDevice device = cuda.device(1);
    FirstDevice.watch(script);
    try (CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
        DeviceMemoryResource resource = new DeviceMemoryResource(device);
        Buffer used = MemoryResource.direct().allocate(BYTES, stream)) {
      used.recordUse(stream);
      Runnable allocate =
          () ->
              assertThatThrownBy(() -> resource.allocate(BYTES, stream))
                  .hasMessage("refused on purpose");
      allocate.run();
      stream.capture(allocate::run).close();
      assertThat(told).containsExactly(1, 1, 1);
      script.note("memPoolGetAccess", _ -> null); // a resource asks who has access
    }
    assertThat(script.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void memoryOfANodeThatNoLaunchAllocated_isFreedOnItsDevice(
      ScriptedDriver script, @OnDevice(1) @NonBlocking CudaStream stream) {
    FirstDevice.watch(script);
    GraphMemoryResource resource = new GraphMemoryResource(stream.device());
    List<Buffer> left = new ArrayList<>();
    CudaGraph graph = stream.capture(() -> left.add(resource.allocate(BYTES, stream)));
    stream.capture(() -> left.getFirst().close()).close(); // no work of this one
    graph.close();
    assertThat(script.count("memFree")).isZero();
    assertThat(script.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void memoryThatMayBePageLockedAllTheSame_isUnlockedOnItsDevice(
      Cuda cuda, ScriptedDriver script, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(script);
    breakAfter(script, "memHostRegister");
    try (Arena arena = Arena.ofShared();
        var _ = stream.use()) {
      MemorySegment memory = arena.allocate(BYTES, BYTES);
      assertThatThrownBy(() -> cuda.registerHost(memory)).isInstanceOf(CudaException.class);
    }
    assertThat(script.count("memHostUnregister")).isOne();
    assertThat(script.notes()).isEmpty();
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void growthWithoutMemory_namesItsDevice(ScriptedDriver script, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(script);
    try (GrowableBuffer buffer = stream.device().growable(32 * MIB)) {
      script.fail("memCreate", CudaStatus.OUT_OF_MEMORY);
      assertThatThrownBy(() -> buffer.grow(24 * MIB))
          .isInstanceOfSatisfying(
              OutOfDeviceMemoryException.class, e -> assertThat(e.details().device()).isEqualTo(1));
    }
    assertThat(script.notes()).isEmpty();
  }

  /** The driver is asked whether something is there. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void memoryThatMayBeMappedAllTheSame_isLookedForOnItsDevice(
      ScriptedDriver script, @OnDevice(1) CudaStream stream) {
    FirstDevice.watch(script);
    try (GrowableBuffer buffer = stream.device().growable(32 * MIB)) {
      breakAfter(script, "memMap");
      assertThatThrownBy(() -> buffer.grow(MIB)).isInstanceOf(CudaException.class);
      assertThat(script.count("memUnmap")).isOne();
    }
    assertThat(script.notes()).isEmpty();
  }

  /** There is no stream in whose order it could be freed. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void memoryThatNoStreamCanFree_isFreedOnItsDeviceAtTheEnd(Subject subject) {
    ScriptedDriver script = new ScriptedDriver();
    Cuda cuda = subject.open(options -> options.withDecorator(script::over));
    CudaStream stream = cuda.device(1).createStream();
    Buffer left = MemoryResource.async().allocate(BYTES, stream);
    FirstDevice.watch(script);
    script.fail("memFreeAsync", CudaStatus.NOT_PERMITTED);
    script.note("memFree", call -> call.number("device") + " " + call.number("address"));
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
    assertThat(script.notes()).contains("1 " + left.address());
  }

  @CudaTest(devices = 2, simulatedOnly = true)
  void whatIsLeftOpen_endsOnItsDeviceWithTheCuda(Subject subject) {
    ScriptedDriver script = new ScriptedDriver();
    Cuda cuda = subject.open(options -> options.withDecorator(script::over));
    CudaStream stream = cuda.device(1).createStream();
    stream.addCallback(() -> {}).join();
    cuda.device(1).profiler().start();
    var _ = cuda.device(1).profiler().profile();
    for (String name : List.of("profilerStop", "memFreeHost")) {
      script.note(name, call -> name + " " + call.number("device"));
    }
    cuda.close();
    assertThat(script.notes()).containsExactlyInAnyOrder("profilerStop 1", "memFreeHost 1");
  }
}
