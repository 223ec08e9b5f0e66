package io.cuvette.sim;

import static io.cuvette.sim.SimulatedParameter.POINTER;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Kernels that wait, reach, register and outlive in ways that nobody thinks of first. */
@Timeout(60)
class HostileKernelTest {
  private static final AtomicInteger NAMES = new AtomicInteger();
  private SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.parse("devices=2,seed=1"));

  @AfterEach
  void close() {
    driver.close();
  }

  private static SimulatedKernel kernel(KernelFunction function) {
    return SimulatedKernel.of("hostile" + NAMES.incrementAndGet(), function, POINTER);
  }

  private long find(SimulatedKernel kernel) {
    long library = driver.kernels().libraryLoadData(SimulatedKernels.ptx(List.of(kernel)));
    return driver.kernels().libraryGetKernel(library, kernel.name());
  }

  private void launch(long kernel, LaunchShape shape, long address) {
    MemorySegment values = Arena.ofAuto().allocate(8, 8);
    values.set(JAVA_LONG, 0, address);
    LaunchParameters arguments = new LaunchParameters(values, List.of(new KernelParameter(0, 8)));
    driver.kernels().launchKernel(0, 0, kernel, shape, arguments);
  }

  private static LaunchShape shape(int blocks, int threads, int shared, boolean cooperative) {
    return new LaunchShape(blocks, 1, 1, threads, 1, 1, 1, 1, 1, shared, cooperative, false);
  }

  private long zeros(int count) {
    long memory = driver.memory().memAlloc(0, count * 4L);
    driver.transfers().memsetD32Async(0, memory, 0, count, 0);
    return memory;
  }

  private int read(long address) {
    MemorySegment result = Arena.ofAuto().allocate(JAVA_INT);
    driver.transfers().memcpyDtoHAsync(0, result, address, 0);
    driver.streams().streamSynchronize(0, 0);
    return result.get(JAVA_INT, 0);
  }

  private static void assertFails(CudaStatus status, String text, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(CudaException.class, e -> assertThat(e.status()).isEqualTo(status))
        .hasMessageContaining(text);
  }

  private int run(SimulatedKernel kernel, LaunchShape shape, long memory) {
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      launch(find(kernel), shape, memory);
      return read(memory);
    }
  }

  @Test
  void functionThatIsRegisteredLate_bringsItsSharedMemory() {
    SimulatedKernel late = kernel(t -> {}).withSharedBytes(40_000);
    long found = find(late);
    assertThat(driver.kernels().kernelGetAttribute(1, found, 0)).isZero();
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(late)) {
      assertThat(driver.kernels().kernelGetAttribute(1, found, 0)).isEqualTo(40_000);
      assertThatThrownBy(() -> launch(found, shape(1, 1, 40_000, false), 0))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("40000 bytes (expected: 0 to 9152");
      assertThatCode(() -> launch(found, shape(1, 1, 9_152, false), 0)).doesNotThrowAnyException();
    }
  }

  @Test
  void limitThatWasSetBeforeTheFunctionIsKnown_leavesRoomForWhatItDeclares() {
    SimulatedKernel late = kernel(t -> {}).withSharedBytes(40_000);
    long found = find(late);
    driver.kernels().kernelSetAttribute(8, 232_448, found, 0);
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(late)) {
      assertThat(driver.kernels().kernelGetAttribute(8, found, 0)).isEqualTo(192_448);
      assertThatThrownBy(() -> launch(found, shape(1, 1, 192_449, false), 0))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("192449 bytes (expected: 0 to 192448");
      launch(found, shape(1, 1, 192_448, false), 0);
      driver.streams().streamSynchronize(0, 0);
    }
  }

  @Test
  void registrations_areClosedOneByOne_andOnce() {
    SimulatedKernel kernel = kernel(t -> t.setInt(t.pointer(0), 5));
    long found = find(kernel);
    long memory = zeros(1);
    SimulatedKernels.Registered first = SimulatedKernels.register(kernel);
    SimulatedKernels.Registered second = SimulatedKernels.register(kernel);
    second.close();
    second.close();
    launch(found, shape(1, 1, 0, false), memory);
    assertThat(read(memory)).isEqualTo(5);
    first.close();
    assertThatThrownBy(() -> launch(found, shape(1, 1, 0, false), memory))
        .hasMessageContaining("has no Java function");
    try (SimulatedKernels.Registered _ = SimulatedKernels.register(kernel)) {
      first.close();
      assertThatCode(() -> launch(found, shape(1, 1, 0, false), memory)).doesNotThrowAnyException();
    }
  }

  @Test
  void moreDeclaredSharedMemoryThanCodeCanHave_isRefused() {
    assertThatThrownBy(() -> kernel(t -> {}).withSharedBytes(49_153))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("sharedBytes: 49153 (expected: 0 to 49152)");
    assertThat(kernel(t -> {}).withSharedBytes(49_152).sharedBytes()).isEqualTo(49_152);
  }
}
