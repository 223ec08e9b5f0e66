package io.cuvette.testkit.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.LibraryHandle;
import io.cuvette.MemoryPool;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.Scope;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MathLibrary;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.ScriptedDriver;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Handles of cuBLAS and cuSOLVER: whose they are, what they are bound to, and when they end. */
class LibraryHandlesTest {
  private static final long WORKSPACE = 32L << 20;
  private static final int MANY = 20;

  private final ScriptedDriver script = new ScriptedDriver();
  private final SimulatedDriver simulator =
      SimulatedDriver.open(SimulatedOptions.parse("devices=2"));
  private final Cuda cuda =
      Cuda.open(CudaOptions.DEFAULTS.withDriver(simulator).withDecorator(script::over));
  private final CudaDevice device = cuda.device(0);

  @AfterEach
  void close() {
    cuda.close();
    assertThat(simulator.liveMathHandles()).isZero();
  }

  private static long onThread(LongSupplier call) throws InterruptedException {
    AtomicLong result = new AtomicLong();
    Thread thread = new Thread(() -> result.set(call.getAsLong()));
    thread.start();
    thread.join();
    return result.get();
  }

  @Test
  void handle_isTheSameForTheSameDeviceAndThread() throws Exception {
    long mine = device.cublasHandle();
    assertThat(device.cublasHandle()).isEqualTo(mine);
    assertThat(cuda.cublasHandle()).isEqualTo(mine);
    assertThat(cuda.device(1).cublasHandle()).isNotEqualTo(mine);
    try (Scope _ = cuda.device(1).use()) {
      assertThat(cuda.cublasHandle()).isEqualTo(cuda.device(1).cublasHandle());
    }
    Set<Long> others =
        new TreeSet<>(
            List.of(device.cusolverDnHandle(), device.cusolverSpHandle(), cuda.cublasHandle()));
    assertThat(others).hasSize(3).contains(mine).doesNotContain(0L);
    CountDownLatch both = new CountDownLatch(2);
    Set<Long> ofThreads = ConcurrentHashMap.newKeySet();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      threads.add(
          Thread.ofPlatform()
              .start(() -> {
                ofThreads.add(device.cublasHandle());
                both.countDown();
                try {
                  both.await();
                } catch (InterruptedException e) {
                  throw new AssertionError(e);
                }
              }));
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(ofThreads).hasSize(2).doesNotContain(mine);
  }

  @Test
  void handle_isBoundToTheStreamThatIsCurrent() {
    script.note("mathHandleSetStream", call -> "stream " + Long.toHexString(call.number("stream")));
    script.note("mathHandleSetWorkspace");
    try (CudaStream stream = device.createStream()) {
      long handle = device.cublasHandle();
      assertThat(device.cublasHandle()).isEqualTo(handle);
      try (Scope _ = stream.use()) {
        assertThat(device.cublasHandle()).isEqualTo(handle);
      }
      device.cublasHandle();
      assertThat(script.notes())
          .containsExactly(
              "stream 0",
              "mathHandleSetWorkspace",
              "stream " + Long.toHexString(stream.handle()),
              "mathHandleSetWorkspace",
              "stream 0",
              "mathHandleSetWorkspace");
      assertThat(cuda.defaultMemoryPool().usedBytes()).as("of one stream").isEqualTo(WORKSPACE);
    }
  }

  /** Whoever has the handle itself can have told it anything. */
  @Test
  void handleThatIsLentAgain_isToldWhatIsNotKnownOfIt() {
    try (CudaStream one = device.createStream();
        CudaStream two = device.createStream()) {
      assertThat(tellsWhen(() -> device.useCublas(one).close())).isTrue();
      assertThat(tellsWhen(() -> device.useCublas(one).close())).isFalse();
      assertThat(tellsWhen(() -> device.useCublas(two).close())).isTrue();
      assertThat(tellsWhen(() -> device.useCublas(two).close())).isFalse();
      long bytes = WORKSPACE / 2;
      Runnable small = () -> device.useLibrary(MathLibrary.CUBLAS, two, bytes).close();
      assertThat(tellsWhen(small)).isTrue();
      assertThat(tellsWhen(small)).isFalse();
      assertThat(tellsWhen(() -> giveOut(two, bytes))).isFalse();
      assertThat(tellsWhen(small)).isTrue();
      assertThat(tellsWhen(small)).as("nobody had it since").isFalse();
    }
  }

  /** Of those that nobody uses, the one that was bound to the stream is taken, wherever it lies. */
  @Test
  void handleOfTheSameStream_isLentFirst() {
    try (CudaStream one = device.createStream();
        CudaStream two = device.createStream()) {
      try (LibraryHandle _ = device.useCublas(one);
          LibraryHandle _ = device.useCublas(two)) {
        assertThat(simulator.liveMathHandles()).isEqualTo(2);
      }
      assertThat(tellsWhen(() -> device.useCublas(one).close())).isFalse();
      assertThat(tellsWhen(() -> device.useCublas(two).close())).isFalse();
      assertThat(tellsWhen(() -> device.useCublas(one).close())).isFalse();
    }
  }

  private void giveOut(CudaStream stream, long bytes) {
    try (LibraryHandle lent = device.useLibrary(MathLibrary.CUBLAS, stream, bytes)) {
      assertThat(lent.handle()).isNotZero();
    }
  }

  private boolean tellsWhen(Runnable lend) {
    script.note("mathHandleSetStream");
    int before = script.notes().size();
    lend.run();
    return script.notes().size() > before;
  }

  /** Only whoever has the handle itself can queue, or capture, what the library does not see. */
  @Test
  void streamThatAHandleIsLentFor_isKnown_untilTheHandleIsGivenOut() {
    script.note("streamIsCapturing");
    CudaStream stream = device.createStream();
    try (LibraryHandle lent = device.useCublas(stream);
        Buffer buffer = cuda.allocate(256, stream)) {
      buffer.fill((byte) 1, stream);
      assertThat(script.notes()).isEmpty();
      assertThat(lent.handle()).isNotZero();
      buffer.fill((byte) 1, stream);
      assertThat(script.notes()).isNotEmpty();
      stream.close();
      assertThatIllegalStateException().isThrownBy(lent::handle);
    }
  }

  @Test
  void workspace_comesFromTheCurrentAllocator_andGoesBack() {
    try (MemoryPool pool = new MemoryPool(cuda)) {
      try (Scope _ = cuda.useAllocator(pool);
          LibraryHandle handle = device.useCublas(device.nullStream())) {
        assertThat(pool.usedBytes()).isEqualTo(WORKSPACE).isEqualTo(handle.workspaceBytes());
        assertThat(cuda.defaultMemoryPool().usedBytes()).isZero();
      }
      assertThat(pool.usedBytes()).isZero();
    }
    try (LibraryHandle small = device.useLibrary(MathLibrary.CUBLAS, device.nullStream(), 500);
        LibraryHandle none = device.useLibrary(MathLibrary.CUBLAS, device.nullStream(), 0);
        LibraryHandle solver =
            device.useLibrary(MathLibrary.CUSOLVER_DN, device.nullStream(), 512)) {
      assertThat(small.workspaceBytes()).isEqualTo(500);
      assertThat(none.workspaceBytes()).isZero();
      assertThat(solver.workspaceBytes()).as("cuSOLVER takes none").isZero();
      assertThat(solver.library()).isEqualTo(MathLibrary.CUSOLVER_DN);
      assertThat(cuda.defaultMemoryPool().usedBytes()).isEqualTo(512);
    }
  }

  @Test
  void handlesThatAreLent_areOneEach_andLentAgain() throws Exception {
    CudaStream stream = device.createStream();
    long first;
    try (LibraryHandle one = device.useCublas(stream);
        LibraryHandle two = device.useCublas(stream)) {
      first = one.handle();
      assertThat(two.handle()).isNotEqualTo(first);
    }
    AtomicLong again = new AtomicLong();
    Thread virtual =
        Thread.ofVirtual()
            .start(() -> {
              try (LibraryHandle one = device.useCublas(stream)) {
                again.set(one.handle());
              }
            });
    virtual.join();
    assertThat(again.get()).as("the one that came back last is lent first").isEqualTo(first);
    assertThat(simulator.liveMathHandles()).isEqualTo(2);
  }

  @Test
  void virtualThread_isToldToBorrow() throws Exception {
    List<Throwable> thrown = new ArrayList<>();
    Thread.ofVirtual()
        .start(() -> {
          try {
            device.cublasHandle();
          } catch (WrongThreadException e) {
            thrown.add(e);
          }
        })
        .join();
    assertThat(thrown)
        .singleElement()
        .satisfies(e ->
            assertThat(e)
                .hasMessageContaining("a handle of cuBLAS belongs to an OS thread")
                .hasMessageContaining("useCublas"));
    assertThat(simulator.liveMathHandles()).isZero();
  }

  @Test
  void handleOfAThreadThatEnded_isGivenToAnother() throws Exception {
    Set<Long> seen = new TreeSet<>();
    for (int i = 0; i < MANY; i++) {
      seen.add(onThread(device::cublasHandle));
    }
    assertThat(seen).hasSize(1);
    assertThat(simulator.liveMathHandles()).isOne();
    cuda.leaksFound(); // looks for what has ended
    assertThat(cuda.defaultMemoryPool().usedBytes()).as("the workspace went back").isZero();
  }

  @Test
  void handleOfAThreadThatEnded_isLent() throws Exception {
    long handle = onThread(device::cublasHandle);
    try (LibraryHandle lent = device.useCublas(device.nullStream())) {
      assertThat(lent.handle()).isEqualTo(handle);
    }
  }

  @Test
  void handleThatWasLent_isBoundAnewForAThread_alsoToTheSameStream() {
    device.useCublas(device.nullStream()).close();
    assertThat(device.cublasHandle()).isNotZero();
    assertThat(cuda.defaultMemoryPool().usedBytes()).isEqualTo(WORKSPACE);
  }

  @Test
  void handlesThatNobodyUses_areFew() {
    List<LibraryHandle> handles = new ArrayList<>();
    for (int i = 0; i < MANY; i++) {
      handles.add(device.useLibrary(MathLibrary.CUSOLVER_SP, device.nullStream(), 0));
    }
    assertThat(simulator.liveMathHandles()).isEqualTo(MANY);
    handles.forEach(LibraryHandle::close);
    assertThat(simulator.liveMathHandles()).isEqualTo(8);
  }

  @Test
  void closedHandle_isRefused() {
    LibraryHandle handle = device.useCublas(device.nullStream());
    assertThat(handle.isClosed()).isFalse();
    String text = handle.toString();
    assertThat(text).matches("handle 0x[0-9a-f]+ of cuBLAS for device 0");
    handle.close();
    handle.close();
    assertThat(handle.isClosed()).isTrue();
    assertThatIllegalStateException().isThrownBy(handle::handle).withMessageContaining(text);
    assertThatIllegalStateException().isThrownBy(handle::workspaceBytes);
  }

  @Test
  void badArguments_areRefused_beforeAnythingIsMade() {
    CudaStream stream = device.createStream();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> cuda.device(1).useCublas(stream))
        .withMessage("stream: of device 0 (expected: of device 1)");
    assertThatIllegalArgumentException()
        .isThrownBy(() -> device.useLibrary(MathLibrary.CUBLAS, stream, -1))
        .withMessage("workspaceBytes: -1 (expected: >= 0)");
    stream.close();
    assertThatIllegalStateException().isThrownBy(() -> device.useCublas(stream));
    try (SimulatedDriver other = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
        Cuda another = Cuda.open(CudaOptions.DEFAULTS.withDriver(other))) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> device.useCublas(another.device(0).nullStream()))
          .withMessageContaining("belongs to another Cuda");
    }
    assertThat(script.count("mathHandleCreate")).isZero();
    assertThat(cuda.defaultMemoryPool().totalBytes()).isZero();
  }

  @Test
  void noMemoryForTheWorkspace_isOneError_andNothingIsKept() {
    assertThatExceptionOfType(OutOfDeviceMemoryException.class)
        .isThrownBy(() -> device.useLibrary(MathLibrary.CUBLAS, device.nullStream(), 1L << 60));
    assertThat(cuda.defaultMemoryPool().usedBytes()).isZero();
    assertThat(simulator.liveMathHandles()).as("kept for the next").isOne();
    device.useCublas(device.nullStream()).close();
    assertThat(simulator.liveMathHandles()).isOne();
  }

  @Test
  void handleThatCannotBeBound_keepsNoMemory_andIsBoundNextTime() {
    for (String call : List.of("mathHandleSetStream", "mathHandleSetWorkspace")) {
      script.fail(call, CudaStatus.UNKNOWN);
      assertThatThrownBy(device::cublasHandle).isInstanceOf(CudaException.class);
      assertThatThrownBy(() -> device.useCublas(device.nullStream()))
          .isInstanceOf(CudaException.class);
      assertThat(cuda.defaultMemoryPool().usedBytes()).isZero();
      script.unscript(call);
    }
    long handle = device.cublasHandle();
    assertThat(device.cublasHandle()).isEqualTo(handle);
    assertThat(cuda.defaultMemoryPool().usedBytes()).isEqualTo(WORKSPACE);
  }

  @Test
  void handleWithoutAWorkspace_thatCannotBeBound_saysWhatTheLibrarySaid() {
    script.fail("mathHandleSetStream", CudaStatus.UNKNOWN);
    assertThatThrownBy(device::cusolverDnHandle)
        .isInstanceOf(CudaException.class)
        .hasNoSuppressedExceptions();
    script.unscript("mathHandleSetStream");
    assertThat(device.cusolverDnHandle()).isNotZero();
  }

  /** The library knows the new stream then, and would go on working there. */
  @Test
  void handleThatWasBoundByHalf_isToldItsFormerStreamAgain() {
    try (CudaStream one = device.createStream();
        CudaStream two = device.createStream()) {
      device.useCublas(one).close();
      script.fail("mathHandleSetWorkspace", CudaStatus.UNKNOWN);
      assertThatThrownBy(() -> device.useCublas(two)).isInstanceOf(CudaException.class);
      script.unscript("mathHandleSetWorkspace");
      assertThat(tellsWhen(() -> device.useCublas(one).close())).isTrue();
      assertThat(simulator.liveMathHandles()).isOne();
    }
  }

  @Test
  void handleOfAThreadThatWasBoundByHalf_isToldItsFormerStreamAgain() {
    long _ = device.cublasHandle();
    script.fail("mathHandleSetWorkspace", CudaStatus.UNKNOWN);
    try (CudaStream stream = device.createStream();
        Scope _ = stream.use()) {
      assertThatThrownBy(device::cublasHandle).isInstanceOf(CudaException.class);
    }
    script.unscript("mathHandleSetWorkspace");
    assertThat(tellsWhen(device::cublasHandle)).isTrue();
  }

  @Test
  void handleThatCannotBeCreated_isNotDestroyedAtTheEnd() {
    script.fail("mathHandleCreate", CudaStatus.UNKNOWN, 1);
    assertThatThrownBy(device::cublasHandle).isInstanceOf(CudaException.class);
    cuda.close();
    assertThat(script.count("mathHandleDestroy")).isZero();
  }

  @Test
  void handlesThatAreOpen_endWithTheCuda() {
    long mine = device.cublasHandle();
    LibraryHandle lent = device.useCublas(device.createStream());
    assertThat(mine).isNotEqualTo(lent.handle());
    cuda.close();
    assertThat(simulator.liveMathHandles()).isZero();
    assertThat(lent.isClosed()).isTrue();
    assertThatIllegalStateException()
        .isThrownBy(device::cublasHandle)
        .withMessage("Cuda is closed");
    assertThatIllegalStateException()
        .isThrownBy(() -> device.useCublas(device.nullStream()))
        .withMessage("Cuda is closed");
  }

  @Test
  void handleThatCannotBeDestroyed_isTriedAgain() {
    device.useCublas(device.nullStream()).close();
    script.fail("mathHandleDestroy", CudaStatus.UNKNOWN, 1);
    assertThatThrownBy(cuda::close).isInstanceOf(CudaException.class);
    assertThat(simulator.liveMathHandles()).isZero();
  }

  /** Whoever has the handles of threads that ended taken back is told. */
  @Test
  void handleOfAThreadThatEnded_thatCannotBeDestroyed_isAFailureOfTheNextCall() throws Exception {
    List<LibraryHandle> enough = new ArrayList<>();
    for (int i = 0; i < 8; i++) {
      enough.add(device.useCublas(device.nullStream()));
    }
    long _ =
        onThread(() -> {
          long own = device.cublasHandle();
          enough.forEach(LibraryHandle::close);
          return own;
        });
    assertThat(simulator.liveMathHandles()).isEqualTo(9);
    script.fail("mathHandleDestroy", CudaStatus.UNKNOWN);
    assertThatThrownBy(() -> device.useCublas(device.nullStream()))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("mathHandleDestroy");
    script.unscript("mathHandleDestroy");
    device.useCublas(device.nullStream()).close();
  }

  /** What a workspace is for is up to the library, how large it is to the device. */
  @Test
  void workspace_isOfTheRecommendedSize_whereTheLibraryTakesOne() {
    long[][] sizes = {{8, 4}, {9, 32}, {10, 32}, {7, 4}};
    for (long[] each : sizes) {
      ScriptedDriver capability = new ScriptedDriver();
      capability.answer(
          "deviceGetAttribute",
          call ->
              call.argument("attribute", Integer.class)
                      == DeviceAttribute.COMPUTE_CAPABILITY_MAJOR.code()
                  ? (int) each[0]
                  : call.proceed());
      try (Cuda own = Cuda.open(CudaOptions.simulated().withDecorator(capability::over));
          LibraryHandle lent = own.device(0).useCublas(own.device(0).nullStream())) {
        assertThat(own.device(0).computeCapability().major()).isEqualTo((int) each[0]);
        assertThat(lent.workspaceBytes()).isEqualTo(each[1] << 20);
      }
    }
    long before = cuda.defaultMemoryPool().usedBytes();
    for (MathLibrary library : MathLibrary.values()) {
      for (long bytes : new long[] {0, 1, 1 << 20}) {
        long told = script.count("mathHandleSetWorkspace");
        try (LibraryHandle lent = device.useLibrary(library, device.nullStream(), bytes)) {
          long given = library.takesWorkspace() ? bytes : 0;
          assertThat(lent.workspaceBytes()).as("%s, %d", library, bytes).isEqualTo(given);
          assertThat(cuda.defaultMemoryPool().usedBytes() > before).isEqualTo(given > 0);
          assertThat(script.count("mathHandleSetWorkspace") > told).isEqualTo(given > 0);
        }
        assertThat(cuda.defaultMemoryPool().usedBytes()).isEqualTo(before);
      }
      assertThatThrownBy(() -> device.useLibrary(library, device.nullStream(), -1))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void streamThatIsClosed_orOfAnotherCuda_isBoundToNoHandle() {
    CudaStream closed = device.createStream();
    closed.close();
    try (Cuda other = Cuda.open(CudaOptions.simulated())) {
      CudaStream foreign = other.device(0).nullStream();
      long made = simulator.liveMathHandles();
      for (MathLibrary library : MathLibrary.values()) {
        assertThatThrownBy(() -> device.useLibrary(library, closed, 0))
            .isInstanceOf(IllegalStateException.class);
        assertThatIllegalArgumentException()
            .isThrownBy(() -> device.useLibrary(library, foreign, 0));
      }
      CudaStream current = device.createStream();
      try (Scope _ = current.use()) {
        current.close();
        for (LongSupplier handle :
            List.<LongSupplier>of(
                device::cublasHandle, device::cusolverDnHandle, device::cusolverSpHandle)) {
          assertThatIllegalStateException().isThrownBy(handle::getAsLong);
        }
      }
      assertThat(cuda.defaultMemoryPool().usedBytes()).isZero();
      assertThat(simulator.liveMathHandles()).isEqualTo(made);
    }
  }
}
