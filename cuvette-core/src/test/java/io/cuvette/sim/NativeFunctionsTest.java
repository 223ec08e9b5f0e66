package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.cuvette.driver.CudaStatus;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Registered functions stand for C allocators, and the driver accounts for what happens. */
class NativeFunctionsTest extends SimTestBase {

  @Test
  void registeredFunctions_areCalledWithTheirArguments() {
    List<String> calls = new ArrayList<>();
    long malloc =
        driver.registerMalloc((parameter, bytes, device) -> {
          calls.add("malloc %d %d %d".formatted(parameter, bytes, device));
          return driver.memory().memAlloc(device, bytes);
        });
    long free =
        driver.registerFree((parameter, address, device) -> {
          calls.add("free %d %d".formatted(parameter, device));
          driver.memory().memFree(device, address);
        });
    long address = driver.natives().callMalloc(malloc, 7, 100, 1);
    assertThat(driver.memory().pointerGetAttribute(0, 9, address)).isEqualTo(1);
    driver.natives().callFree(free, 8, address, 1);
    assertThat(calls).containsExactly("malloc 7 100 1", "free 8 1");
    assertThat(driver.liveAllocations()).isZero();
  }

  @Test
  void null_isPassedOn() {
    long malloc = driver.registerMalloc((parameter, bytes, device) -> 0);
    assertThat(driver.natives().callMalloc(malloc, 0, 100, 0)).isZero();
  }

  @Test
  void unknownFunctions_areRefused() {
    long malloc = driver.registerMalloc((parameter, bytes, device) -> 0);
    CudaStatus status = CudaStatus.INVALID_VALUE;
    assertFails(status, "a registered malloc", () -> driver.natives().callMalloc(0, 0, 1, 0));
    assertFails(status, "a registered free", () -> driver.natives().callFree(malloc, 0, 1, 0));
    assertFails(
        CudaStatus.INVALID_DEVICE, "device: 5", () -> driver.natives().callMalloc(malloc, 0, 1, 5));
  }

  @Test
  void accountingOfAnUnknownDevice_isRefused() {
    for (int device : new int[] {-1, 2}) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> driver.liveBytes(device))
          .withMessage("device: " + device + " (expected: 0 to 1)");
      assertThatIllegalArgumentException().isThrownBy(() -> driver.simulatedNanos(device));
    }
  }

  @Test
  void accounting_seesEveryKindOfObject() {
    assertThat(driver.report()).isEmpty();
    long calls = driver.driverCalls();
    driver.memory().memAlloc(0, 100);
    driver.memory().memHostAlloc(0, 200, 0);
    driver.memory().memAllocManaged(1, 300, 1);
    long stream = stream(1);
    driver.events().eventCreate(0, 2);
    driver.captures().streamBeginCapture(1, stream, 2);
    driver.captures().streamEndCapture(1, stream);
    assertThat(driver.driverCalls() - calls).isEqualTo(7);
    assertThat(driver.liveAllocations()).isEqualTo(3);
    assertThat(driver.liveHostBytes()).isEqualTo(500);
    assertThat(driver.report())
        .contains("DEVICE memory", "100 bytes, device 0", "PINNED memory", "MANAGED memory")
        .contains("stream id", "event flags 2", "graph of 0 nodes");
    assertThat(driver.report().lines()).hasSize(6);
  }
}
