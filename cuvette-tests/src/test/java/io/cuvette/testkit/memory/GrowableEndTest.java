package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.GrowableBuffer;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.DriverCall;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.AtOnce;
import io.cuvette.testkit.support.TestKernels;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Buffers that grow when they end, when their Cuda has, and when two threads change them. */
@Timeout(60)
class GrowableEndTest {
  private static final long MIB = 1L << 20;

  private final AtOnce threads = new AtOnce();

  @CudaTest(simulatedOnly = true)
  void memoryOfAGraph_isUnmappedAfterTheGraph(Cuda cuda, CudaStream stream) {
    long free = cuda.device(0).memoryInfo().freeBytes();
    GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
    buffer.grow(4 * MIB);
    CudaGraph graph = stream.capture(() -> buffer.fill((byte) 4, stream));
    CudaGraphExec exec = graph.instantiate();
    graph.close();
    buffer.close();
    assertThat(buffer.isClosed()).isTrue();
    assertThat(cuda.device(0).memoryInfo().freeBytes()).isLessThanOrEqualTo(free - 4 * MIB);
    exec.launch(stream);
    stream.synchronize();
    exec.close();
    cuda.device(0).synchronize();
    cuda.device(0).growable(MIB).close(); // takes back what graphs have left
    assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(free);
  }

  @Test
  void bufferLeftOpen_isGivenBackWithItsCuda() {
    ScriptedDriver script = new ScriptedDriver();
    GrowableBuffer buffer;
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
      buffer = cuda.device(0).growable(64 * MIB);
      buffer.grow(8 * MIB);
      buffer.fill((byte) 1);
    }
    assertThat(buffer.isClosed()).isTrue();
    assertThat(script.count("memUnmap")).isOne();
    assertThat(script.count("memAddressFree")).isOne();
  }

  /** It reports what earlier work failed with: the next piece would find its place taken. */
  @Test
  void pieceThatMayBeMapped_isUnmapped() {
    for (boolean isDone : new boolean[] {true, false}) {
      ScriptedDriver script = new ScriptedDriver();
      try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
          GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
        long free = cuda.device(0).memoryInfo().freeBytes();
        script.answer("memMap", call -> losing(call, isDone));
        assertThatThrownBy(() -> buffer.grow(8 * MIB)).isInstanceOf(CudaException.class);
        script.unscript("memMap");
        assertThat(script.count("memUnmap")).isEqualTo(isDone ? 1 : 0);
        assertThat(buffer.blockBytes()).isZero();
        buffer.grow(8 * MIB);
        assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(free - 8 * MIB);
        buffer.fill((byte) 1);
      }
    }
  }

  private static Object losing(DriverCall call, boolean isDone) throws Throwable {
    Object _ = isDone ? call.proceed() : null;
    throw new CudaException(CudaStatus.ILLEGAL_ADDRESS, call.name(), "on purpose");
  }

  /** There is nothing in it that could have gone. */
  @CudaTest
  void emptyPartBehindTheEnd_canBeUsed(Cuda cuda, CudaStream stream) {
    try (GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
        Buffer source = cuda.allocate(MIB);
        CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel scale = module.kernel("scale");
      LaunchConfig config = LaunchConfig.of(1, 1);
      buffer.grow(8 * MIB);
      Buffer empty = buffer.slice(6 * MIB, 0);
      Buffer one = buffer.slice(6 * MIB, 1);
      buffer.shrink(MIB);
      assertThatCode(() -> empty.fill((byte) 1, stream)).doesNotThrowAnyException();
      assertThatCode(() -> empty.copyFrom(source.slice(0, 0), stream)).doesNotThrowAnyException();
      assertThatCode(() -> empty.recordUse(stream)).doesNotThrowAnyException();
      assertThatCode(() -> stream.launch(scale, config, empty, 2f, 0)).doesNotThrowAnyException();
      assertThatThrownBy(() -> stream.launch(scale, config, one, 2f, 0))
          .hasMessageContaining("it was shrunk");
      assertThatThrownBy(() -> one.fill((byte) 1, stream)).hasMessageContaining("it was shrunk");
    }
  }

  @Test
  void closedCuda_isWhatIsNamed() {
    GrowableBuffer buffer;
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      buffer = cuda.device(0).growable(MIB);
    }
    for (Runnable change : new Runnable[] {() -> buffer.grow(1), () -> buffer.shrink(0)}) {
      assertThatThrownBy(change::run)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("Cuda");
    }
  }

  @CudaTest(simulatedOnly = true)
  void changesOfTwoThreads_areMadeOneAfterTheOther(Cuda cuda, ScriptedDriver script)
      throws InterruptedException {
    try (GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
        Hold hold = script.hold("memMap")) {
      Thread first = threads.start(() -> buffer.grow(8 * MIB));
      hold.awaitBegun();
      Thread second = threads.start(() -> buffer.grow(16 * MIB));
      while (second.getState() == Thread.State.RUNNABLE) {
        Thread.onSpinWait();
      }
      assertThat(second.isAlive()).isTrue();
      assertThat(buffer.byteSize()).isZero();
      hold.release();
      first.join();
      second.join();
      threads.assertNoFailures();
      assertThat(buffer.byteSize()).isEqualTo(16 * MIB);
      assertThat(buffer.blockBytes()).isEqualTo(16 * MIB);
      buffer.fill((byte) 1);
    }
  }

  /** The addresses of memory that is still mapped are nobody else's. */
  @Test
  void addressesOfMemoryThatCannotBeUnmapped_areKeptUntilItIs() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
      GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
      buffer.grow(8 * MIB);
      script.fail("memUnmap", CudaStatus.NOT_PERMITTED);
      assertThatThrownBy(buffer::close).isInstanceOf(CudaException.class);
      assertThat(script.count("memAddressFree")).isZero();
      script.unscript("memUnmap");
      cuda.device(0).growable(MIB).close(); // what failed is tried again
      assertThat(script.count("memUnmap")).isOne();
      assertThat(script.count("memAddressFree")).isEqualTo(2);
    }
    assertThat(script.count("memAddressFree")).isEqualTo(2);
  }

  /** It reports what earlier work failed with: only what is still mapped is unmapped again. */
  @Test
  void memoryThatMayBeUnmapped_isAskedForFirst() {
    for (boolean isDone : new boolean[] {true, false}) {
      ScriptedDriver script = new ScriptedDriver();
      try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
        GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
        buffer.grow(2 * MIB);
        buffer.grow(8 * MIB);
        script.answer("memUnmap", call -> losing(call, isDone));
        assertThatThrownBy(buffer::close).isInstanceOf(CudaException.class);
        script.unscript("memUnmap");
        assertThat(cuda.leaksFound()).isZero(); // what failed is tried again
        assertThat(script.count("memUnmap")).isEqualTo(isDone ? 0 : 2);
        assertThat(script.count("memAddressFree")).isOne();
      }
    }
  }

  @Test
  void memoryBehindTheEndThatMayBeUnmapped_isAllThatIsAskedFor() {
    for (boolean isDone : new boolean[] {true, false}) {
      ScriptedDriver script = new ScriptedDriver();
      try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
          GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
        buffer.grow(2 * MIB);
        buffer.grow(8 * MIB);
        script.answer("memUnmap", call -> losing(call, isDone));
        assertThatThrownBy(() -> buffer.shrink(2 * MIB)).isInstanceOf(CudaException.class);
        script.unscript("memUnmap");
        script.fail("memGetAccess", CudaStatus.NOT_PERMITTED, 1);
        assertThatThrownBy(() -> buffer.shrink(2 * MIB)).as("no answer is no").isNotNull();
        assertThat(buffer.blockBytes()).isGreaterThan(2 * MIB);
        buffer.shrink(2 * MIB);
        assertThat(buffer.blockBytes()).isEqualTo(2 * MIB);
        assertThat(script.count("memUnmap")).isEqualTo(isDone ? 0 : 1);
        buffer.fill((byte) 1);
        buffer.grow(8 * MIB);
        buffer.fill((byte) 2);
      }
    }
  }

  /** It reports what earlier work failed with: the addresses may be another's by now. */
  @Test
  void addressesThatMayBeFree_areNotFreedAgain() {
    ScriptedDriver script = new ScriptedDriver();
    script.note("memAddressFree");
    Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
    GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
    buffer.grow(8 * MIB);
    script.answer("memAddressFree", call -> losing(call, true));
    assertThatThrownBy(buffer::close).isInstanceOf(CudaException.class);
    script.unscript("memAddressFree");
    cuda.close();
    assertThat(script.notes()).hasSize(1);
  }

  /** Nobody else keeps the pool from giving it out. */
  @CudaTest(simulatedOnly = true)
  void memoryThatAPoolLends_isNotShrunk(Cuda cuda) {
    GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
    buffer.grow(8 * MIB);
    PoolOptions options = PoolOptions.DEFAULTS.withUpstream((_, _) -> buffer);
    try (MemoryPool pool = new MemoryPool(cuda, options)) {
      for (boolean isUsed : new boolean[] {true, false}) {
        Buffer part = pool.allocate(MIB);
        if (!isUsed) {
          part.close();
        }
        assertThatThrownBy(() -> buffer.shrink(4 * MIB))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("a pool lends from it");
        assertThat(buffer.byteSize()).isEqualTo(8 * MIB);
        part.close();
      }
    }
    assertThat(buffer.isClosed()).isTrue();
  }

  @CudaTest(simulatedOnly = true)
  void memoryThatAnOperationIsAt_isNotShrunk(Cuda cuda, ScriptedDriver script)
      throws InterruptedException {
    try (GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
        Hold hold = script.hold("memsetD8Async")) {
      buffer.grow(8 * MIB);
      Thread filling = threads.start(() -> buffer.fill((byte) 1));
      hold.awaitBegun();
      assertThatThrownBy(() -> buffer.shrink(MIB))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("operations of others go on");
      assertThat(buffer.byteSize()).isEqualTo(8 * MIB);
      hold.release();
      filling.join();
      threads.assertNoFailures();
      buffer.shrink(MIB);
      assertThat(buffer.byteSize()).isEqualTo(MIB);
    }
  }

  /** The stream cannot be asked for its work before the capture ends. */
  @CudaTest(simulatedOnly = true)
  void memoryClosedWhileItsStreamCaptures_isUnmappedAfterTheWork(
      Cuda cuda, @NonBlocking CudaStream stream, ScriptedDriver script) {
    long free = cuda.device(0).memoryInfo().freeBytes();
    GrowableBuffer buffer = cuda.device(0).growable(64 * MIB);
    buffer.grow(4 * MIB);
    try (Gate gate = Gate.on(stream)) {
      buffer.fill((byte) 1, stream);
      CudaGraph graph =
          stream.capture(() -> {
            buffer.close();
            assertThat(script.count("memUnmap")).isZero();
          });
      graph.close();
      assertThat(buffer.isClosed()).isTrue();
      assertThat(script.count("memUnmap")).as("its work goes on").isZero();
      gate.open();
    }
    stream.synchronize();
    for (int i = 0; i < 3; i++) {
      cuda.device(0).synchronize();
      cuda.device(0).growable(MIB).close(); // takes back what graphs have left
    }
    assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(free);
  }

  /** Its place is that of the next handle. */
  @Test
  void handleThatCouldNotBeReleased_isReleasedBeforeTheBufferGrows() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        GrowableBuffer buffer = cuda.device(0).growable(64 * MIB)) {
      long free = cuda.device(0).memoryInfo().freeBytes();
      script.fail("memRelease", CudaStatus.NOT_PERMITTED);
      assertThatThrownBy(() -> buffer.grow(2 * MIB)).isInstanceOf(CudaException.class);
      script.unscript("memRelease");
      buffer.grow(2 * MIB);
      assertThat(script.count("memRelease")).isEqualTo(script.count("memCreate"));
      assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(free - 2 * MIB);
    }
  }
}
