package io.cuvette.testkit.device;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.Dim3;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.LaunchConfig;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.NonBlocking;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.TestKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** What a device cannot do is said by name, before the driver is asked for it. */
class WithoutAttributeTest {
  private static final LaunchConfig SMALL = LaunchConfig.of(2, 32);

  private static void without(ScriptedDriver driver, DeviceAttribute missing) {
    driver.answer(
        "deviceGetAttribute",
        call -> call.number("attribute") == missing.code() ? (Object) 0 : call.proceed());
  }

  @CudaTest(simulatedOnly = true)
  void launchInClusters_isRefused(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    without(driver, DeviceAttribute.CLUSTER_LAUNCH);
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> stream.launch(kernel, SMALL.inClustersOf(Dim3.of(2))))
          .withMessage("cluster: (2, 1, 1) (expected: none, device 0 has no clusters)");
      stream.launch(kernel, SMALL);
      stream.synchronize();
    }
  }

  /** What the driver does not know is left out; any other failure is told, and asked again. */
  @CudaTest(simulatedOnly = true)
  void attributeThatCannotBeRead_isNoneThatTheDriverDoesNotKnow(Cuda cuda, ScriptedDriver driver) {
    CudaDevice device = cuda.device(0);
    driver.answer(
        "deviceGetAttribute",
        call -> {
          if (call.number("attribute") == DeviceAttribute.CLUSTER_LAUNCH.code()) {
            throw new CudaException(CudaStatus.ECC_UNCORRECTABLE, call.name(), "by the test");
          }
          return call.proceed();
        });
    assertThatThrownBy(device::attributes).isInstanceOf(CudaException.class);
    driver.answer(
        "deviceGetAttribute",
        call -> {
          if (call.number("attribute") == DeviceAttribute.CLUSTER_LAUNCH.code()) {
            throw new CudaException(CudaStatus.INVALID_VALUE, call.name(), "by the test");
          }
          return call.proceed();
        });
    assertThat(device.attributes())
        .doesNotContainKey(DeviceAttribute.CLUSTER_LAUNCH)
        .containsKey(DeviceAttribute.MULTIPROCESSOR_COUNT);
  }

  /** An older driver has not even the question. */
  @CudaTest(simulatedOnly = true)
  void blocksThatRunAtOnce_areCountedWithoutClusters(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    without(driver, DeviceAttribute.CLUSTER_LAUNCH);
    driver.fail("occupancyMaxActiveClusters", CudaStatus.NOT_SUPPORTED);
    CudaDevice device = cuda.device(0);
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      long most =
          (long) device.attribute(DeviceAttribute.MULTIPROCESSOR_COUNT)
              * kernel.maxActiveBlocks(device, 32, 0);
      for (LaunchConfig each : new LaunchConfig[] {SMALL, SMALL.withCluster(Dim3.ONE)}) {
        assertThat(kernel.maxResidentBlocks(device, each)).isEqualTo(most);
        stream.launch(kernel, each.withCooperative(true));
      }
      stream.synchronize();
      assertThat(driver.count("occupancyMaxActiveClusters")).isZero();
    }
  }

  @CudaTest(simulatedOnly = true)
  void cooperativeLaunch_isRefused(
      Cuda cuda, ScriptedDriver driver, @NonBlocking CudaStream stream) {
    without(driver, DeviceAttribute.COOPERATIVE_LAUNCH);
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      assertThatIllegalArgumentException()
          .isThrownBy(() -> stream.launch(kernel, SMALL.withCooperative(true)))
          .withMessage("cooperative: true (expected: false, device 0 has no cooperative launches)");
      assertThat(driver.count("launchKernel")).isZero();
    }
  }

  @CudaTest(simulatedOnly = true)
  void memoryByPages_isRefused(Cuda cuda, ScriptedDriver driver) {
    without(driver, DeviceAttribute.VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED);
    CudaDevice device = cuda.device(0);
    assertThatThrownBy(() -> device.growable(1 << 20))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessage("device 0 has no virtual memory management (expected: a MemoryPool instead)");
    assertThatThrownBy(() -> new ElasticMemoryPool(cuda))
        .isInstanceOf(UnsupportedOperationException.class);
    assertThat(driver.count("memAddressReserve")).isZero();
  }

  @CudaTest(simulatedOnly = true)
  void pagesForOtherProcesses_areRefused(Cuda cuda, ScriptedDriver driver) {
    without(driver, DeviceAttribute.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
    assertThatThrownBy(
            () -> new ElasticMemoryPool(cuda, ElasticPoolOptions.DEFAULTS.withExportable(true)))
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageStartingWith("device 0 cannot export virtual memory by file descriptors");
    new ElasticMemoryPool(cuda).close();
  }

  @CudaTest(simulatedOnly = true)
  void memoryOfTheHost_isNotRegistered(Cuda cuda, ScriptedDriver driver) {
    MemorySegment memory = Arena.ofAuto().allocate(64);
    for (DeviceAttribute missing :
        new DeviceAttribute[] {
          DeviceAttribute.HOST_REGISTER_SUPPORTED,
          DeviceAttribute.CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
        }) {
      without(driver, missing);
      assertThatThrownBy(() -> cuda.registerHost(memory))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessage("registerHost on device 0: %s is 0 (expected: 1)", missing);
    }
    without(driver, DeviceAttribute.READ_ONLY_HOST_REGISTER_SUPPORTED);
    assertThatThrownBy(() -> cuda.registerHost(memory.asReadOnly()))
        .isInstanceOf(UnsupportedOperationException.class);
    cuda.registerHost(memory).close();
  }
}
