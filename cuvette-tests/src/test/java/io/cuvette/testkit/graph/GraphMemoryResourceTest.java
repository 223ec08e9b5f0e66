package io.cuvette.testkit.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaGraph;
import io.cuvette.CudaGraphExec;
import io.cuvette.CudaStream;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GraphOptions;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.DriverCall;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Timeout;

/** Memory that graphs allocate and free themselves. */
class GraphMemoryResourceTest {
  private static final int BYTES = 1 << 16;

  /** Closed and allocated again in the capture, with other memory of the graph beside it. */
  @CudaTest
  void memoryThatACaptureCloses_isThereInEachLaunch(Cuda cuda, @NonBlocking CudaStream stream) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    try (Buffer result = cuda.allocate(BYTES, stream);
        CudaGraph graph =
            stream.capture(() -> {
              for (int i = 1; i <= 3; i++) {
                try (Buffer first = resource.allocate(BYTES, stream);
                    Buffer second = resource.allocate(BYTES, stream)) {
                  assertThat(first.address()).isNotEqualTo(second.address());
                  first.fill((byte) i, stream);
                  second.copyFrom(first, stream);
                  result.copyFrom(second, stream);
                }
              }
            });
        CudaGraphExec executable = graph.instantiate()) {
      for (int i = 0; i < 20; i++) {
        result.fill((byte) 0, stream);
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(result, 3)).isTrue();
      }
      assertThat(resource.reservedMemCurrent()).isGreaterThanOrEqualTo(2 * BYTES);
      assertThat(resource.reservedMemHigh()).isGreaterThanOrEqualTo(resource.reservedMemCurrent());
    }
    resource.trim();
  }

  @CudaTest
  void memoryThatACaptureLeavesOpen_outlivesTheLaunch(
      Cuda cuda, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    List<Buffer> left = new ArrayList<>();
    try (CudaGraph graph = stream.capture(() -> left.add(filled(resource, stream, 5)));
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      Buffer result = left.getFirst();
      assertThat(result.blockBytes()).isEqualTo(BYTES);
      other.waitFor(stream);
      try (Buffer copy = cuda.allocate(BYTES, other)) {
        copy.copyFrom(result, other);
        assertThatThrownBy(() -> executable.launch(stream)).isInstanceOf(CudaException.class);
        result.close(); // behind the copy in the other stream
        other.synchronize();
        assertThat(Bytes.areAll(copy, 5)).isTrue();
      }
      assertThatIllegalStateException()
          .isThrownBy(() -> result.fill((byte) 1, stream))
          .withMessage("buffer of %d bytes at 0x%x, of a graph is closed", BYTES, result.address());
      executable.launch(stream);
      stream.synchronize();
    }
    cuda.driver().memory().memFree(0, left.getFirst().address()); // of the second launch
    resource.trim();
  }

  @CudaTest(simulatedOnly = true)
  void memoryThatAnotherStreamUses_isFreedBehindThat_andNobodyWaits(
      Cuda cuda,
      ScriptedDriver driver,
      @NonBlocking CudaStream stream,
      @NonBlocking CudaStream other) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    List<Buffer> left = new ArrayList<>();
    try (CudaGraph graph = stream.capture(() -> left.add(filled(resource, stream, 5)));
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      other.waitFor(stream);
      try (Gate gate = Gate.on(other)) {
        left.getFirst().recordUse(other);
        for (String wait : List.of("eventSynchronize", "streamSynchronize")) {
          driver.note(wait).answer(wait, call -> opened(gate, call));
        }
        driver.note("streamWaitEvent", "memFreeAsync");
        left.getFirst().close();
        assertThat(driver.notes()).containsExactly("streamWaitEvent", "memFreeAsync");
      }
      cuda.device(0).synchronize();
    }
  }

  private static @Nullable Object opened(Gate gate, DriverCall call) throws Throwable {
    gate.open(); // else it would wait for ever
    return call.proceed();
  }

  /** The driver may not have it just then, and the process does not survive that in a batch. */
  @CudaTest(simulatedOnly = true)
  void memoryOfAGraph_isInNoBatchOfTheDriver(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    List<Buffer> left = new ArrayList<>();
    try (CudaGraph graph = stream.capture(() -> left.add(filled(resource, stream, 5)));
        CudaGraphExec executable = graph.instantiate();
        Buffer copy = cuda.allocate(BYTES, stream);
        Buffer other = cuda.allocate(BYTES, stream)) {
      executable.launch(stream);
      try (Buffer result = left.getFirst()) {
        CopyBatch.of(halves(copy), halves(result)).copy(stream);
        CopyBatch.of(halves(result), halves(copy)).copy(stream);
        assertThat(driver.count("memcpyBatchAsync")).isZero();
        CopyBatch.of(halves(other), halves(copy)).copy(stream);
        assertThat(driver.count("memcpyBatchAsync")).isOne();
      }
      stream.synchronize();
      assertThat(Bytes.areAll(other, 5)).isTrue();
    }
  }

  private static List<Buffer> halves(Buffer buffer) {
    return List.of(buffer.slice(0, BYTES / 2), buffer.slice(BYTES / 2));
  }

  private static Buffer filled(GraphMemoryResource resource, CudaStream stream, int value) {
    Buffer made = resource.allocate(BYTES, stream);
    made.fill((byte) value, stream);
    return made;
  }

  @CudaTest
  void memoryThatIsFreedOnLaunch_isThereAfterEach(Cuda cuda, @NonBlocking CudaStream stream) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    List<Buffer> left = new ArrayList<>();
    try (CudaGraph graph = stream.capture(() -> left.add(filled(resource, stream, 6)));
        CudaGraphExec executable =
            graph.instantiate(GraphOptions.DEFAULTS.withFreeOnLaunch(true))) {
      for (int i = 0; i < 5; i++) {
        executable.launch(stream);
        stream.synchronize();
        assertThat(Bytes.areAll(left.getFirst(), 6)).isTrue();
        left.getFirst().fill((byte) 1, stream);
      }
      left.getFirst().close();
    }
    assertThat(resource.usedMemHigh()).isGreaterThanOrEqualTo(BYTES);
    stream.synchronize();
    resource.trim();
    resource.resetUsedMemHigh();
    resource.resetReservedMemHigh();
    assertThat(resource.usedMemHigh()).isEqualTo(resource.usedMemCurrent());
    assertThat(resource.reservedMemHigh()).isEqualTo(resource.reservedMemCurrent());
  }

  @CudaTest
  void memoryThatNoLaunchAllocated_isClosedAllTheSame(
      Cuda cuda, @NonBlocking CudaStream stream, @NonBlocking CudaStream other) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    List<Buffer> left = new ArrayList<>();
    CudaGraph graph = stream.capture(() -> left.add(filled(resource, stream, 7)));
    left.getFirst().close();
    left.getFirst().close();
    graph.close();
    CudaGraph second = other.capture(() -> left.add(filled(resource, other, 7)));
    try (CudaGraph third = other.capture(() -> left.getLast().close())) {
      assertThat(third.isClosed()).isFalse();
    }
    second.close();
    assertThat(left).allMatch(Buffer::isClosed);
  }

  /** There, each launch of that graph would free what the first one left. */
  @CudaTest(simulatedOnly = true)
  void memoryThatIsClosedInAnotherCapture_isNoWorkOfThat(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    List<Buffer> left = new ArrayList<>();
    try (CudaGraph graph = stream.capture(() -> left.add(filled(resource, stream, 5)));
        CudaGraphExec executable = graph.instantiate()) {
      for (int i = 0; i < 2; i++) {
        executable.launch(stream);
        stream.synchronize();
        driver.note("memFree", "memFreeAsync");
        stream.capture(left.getFirst()::close).close();
        assertThat(driver.takeNotes()).hasSize(1 - i).doesNotContain("memFreeAsync");
      }
    }
    cuda.driver().memory().memFree(0, left.getFirst().address()); // of the second launch
  }

  @CudaTest(simulatedOnly = true, tidy = false)
  void freeThatTheDriverRefuses_isTold(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    List<Buffer> left = new ArrayList<>();
    try (CudaGraph graph = stream.capture(() -> left.add(filled(resource, stream, 5)));
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      stream.synchronize();
      driver.fail("memFreeAsync", CudaStatus.NOT_PERMITTED, 1);
      assertThatThrownBy(left.getFirst()::close).isInstanceOf(CudaException.class);
      assertThat(left.getFirst().isClosed()).isTrue();
    }
  }

  @CudaTest(tidy = false)
  void memoryThatIsLeftOpen_endsWithTheCuda(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    List<Buffer> left = new ArrayList<>();
    try (CudaGraph graph =
            stream.capture(() -> {
              left.add(filled(resource, stream, 5));
              left.add(filled(resource, stream, 5));
            });
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
    }
    cuda.close();
    assertThat(left).hasSize(2).allMatch(Buffer::isClosed);
    left.forEach(Buffer::close);
    if (subject.isSimulated()) {
      assertThat(subject.simulator(cuda).report()).isEmpty();
    }
  }

  @CudaTest
  void whatIsWrong_isRefused(Cuda cuda, @NonBlocking CudaStream stream) {
    GraphMemoryResource resource = new GraphMemoryResource(cuda.device(0));
    assertThatIllegalStateException()
        .isThrownBy(() -> resource.allocate(BYTES, stream))
        .withMessageContaining("is not capturing a graph (expected: one that is");
    assertThatIllegalStateException()
        .isThrownBy(() -> resource.allocate(BYTES, cuda.device(0).nullStream()));
    assertThatIllegalArgumentException().isThrownBy(() -> resource.allocate(-1, stream));
    if (cuda.deviceCount() > 1) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> resource.allocate(BYTES, cuda.device(1).nullStream()))
          .withMessageContaining("expected: a stream of");
    }
    try (CudaGraph graph =
        stream.capture(() -> {
          try (Buffer empty = resource.allocate(0, stream)) {
            assertThat(empty.byteSize()).isZero();
          }
        })) {
      assertThat(graph.isClosed()).isFalse();
    }
  }

  /** Each number is asked for by its own attribute, of its own device, and trimming is a call. */
  @CudaTest(devices = 2, simulatedOnly = true)
  void everyCall_isTheDriversForTheDevice(Cuda cuda, ScriptedDriver driver) {
    driver.answer(
        "deviceGetGraphMemAttribute",
        call ->
            100L * (1 + call.argument("attribute", GraphMemAttribute.class).ordinal())
                + call.number("device"));
    driver.note("deviceGraphMemTrim", call -> "trim " + call.number("device"));
    driver.note(
        "deviceResetGraphMemAttribute",
        call -> call.argument("attribute", GraphMemAttribute.class) + " " + call.number("device"));
    for (int id = 0; id < 2; id++) {
      GraphMemoryResource resource = new GraphMemoryResource(cuda.device(id));
      assertThat(resource.usedMemCurrent()).isEqualTo(value(GraphMemAttribute.USED_CURRENT, id));
      assertThat(resource.usedMemHigh()).isEqualTo(value(GraphMemAttribute.USED_HIGH, id));
      assertThat(resource.reservedMemCurrent())
          .isEqualTo(value(GraphMemAttribute.RESERVED_CURRENT, id));
      assertThat(resource.reservedMemHigh()).isEqualTo(value(GraphMemAttribute.RESERVED_HIGH, id));
      resource.trim();
      resource.resetUsedMemHigh();
      resource.resetReservedMemHigh();
      assertThat(driver.takeNotes())
          .containsExactly("trim " + id, "USED_HIGH " + id, "RESERVED_HIGH " + id);
    }
  }

  private static long value(GraphMemAttribute attribute, int device) {
    return 100L * (1 + attribute.ordinal()) + device;
  }

  /** No other thread can ask it, nor order anything behind it but by a wait. */
  @CudaTest(simulatedOnly = true)
  @Timeout(60)
  void memoryThatTheOwnStreamOfAnotherThreadUses_isFreedOnceThatIsDone(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) throws Exception {
    CudaDevice device = cuda.device(0);
    GraphMemoryResource resource = new GraphMemoryResource(device);
    List<Buffer> left = new ArrayList<>();
    List<Gate> gates = new ArrayList<>();
    try (CudaGraph graph = stream.capture(() -> left.add(filled(resource, stream, 5)));
        CudaGraphExec executable = graph.instantiate()) {
      executable.launch(stream);
      stream.synchronize();
      Thread using =
          Thread.ofPlatform()
              .start(() -> {
                CudaStream own = device.perThreadStream();
                gates.add(Gate.on(own));
                left.getFirst().fill((byte) 1, own);
              });
      using.join();
      driver.note("memFreeAsync");
      Thread closing = Thread.ofPlatform().start(left.getFirst()::close);
      for (int i = 0; i < 100 && closing.isAlive(); i++) {
        closing.join(1);
      }
      List<String> early = driver.notes();
      gates.getFirst().open();
      closing.join();
      assertThat(early).isEmpty();
      assertThat(driver.notes()).containsExactly("memFreeAsync");
      device.synchronize();
    }
  }
}
