package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AllocationHandle;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.PinnedMemoryResource;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.testkit.DriverCall;
import io.cuvette.testkit.ScriptedDriver;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** Machines on which pools cannot be shared. */
@EnabledOnOs(OS.LINUX)
class PoolCapabilityTest {
  private static final int HOST_NUMA_ID = 134;
  private static final PinnedMemoryResourceOptions PINNED =
      PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);
  private static final DeviceMemoryResourceOptions DEVICE =
      DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);

  private final ScriptedDriver driver = new ScriptedDriver();
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(driver::over));
  private final long before = OpenFiles.count();

  @AfterEach
  void nothingIsLeft() {
    cuda.close();
    assertThat(OpenFiles.count()).isLessThanOrEqualTo(before);
  }

  @Test
  void driverThatRefusesSharedPools_isExplainedWithTheDevicesAttribute() {
    driver.answer(
        "memPoolCreate",
        call -> {
          if (properties(call).handleTypes() != 0) {
            throw new CudaException(CudaStatus.NOT_SUPPORTED, "cuMemPoolCreate", "no");
          }
          return call.proceed();
        });
    assertThatThrownBy(() -> new DeviceMemoryResource(cuda.device(0), DEVICE))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_SUPPORTED))
        .hasMessageContaining("MEMPOOL_SUPPORTED_HANDLE_TYPES of")
        .hasMessageContaining(" is 1);");
    assertThatThrownBy(() -> new PinnedMemoryResource(cuda, PINNED))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("HOST_NUMA_MEMORY_POOLS_SUPPORTED");
    new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS).close();
  }

  /** The first failure is the one to tell. */
  @Test
  void attributeThatTheDriverDoesNotTell_isUnknown() {
    driver.fail("memPoolCreate", CudaStatus.NOT_PERMITTED);
    driver.fail("deviceGetAttribute", CudaStatus.INVALID_VALUE);
    assertThatThrownBy(() -> new DeviceMemoryResource(cuda.device(0), DEVICE))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_PERMITTED))
        .hasMessageContaining("cannot share")
        .hasMessageContaining(" is unknown to the driver);");
  }

  @Test
  void driverThatRefusesTheExport_leavesNoPool() {
    driver.fail("memPoolExportToShareableHandle", CudaStatus.NOT_PERMITTED);
    assertThatThrownBy(() -> new DeviceMemoryResource(cuda.device(0), DEVICE))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cannot share");
    assertThatThrownBy(() -> new PinnedMemoryResource(cuda, PINNED))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cannot share");
    assertThat(driver.count("memPoolCreate")).isEqualTo(2);
    assertThat(driver.count("memPoolDestroy")).isEqualTo(2);
  }

  @Test
  void mostBytes_reachTheDriver_whetherThePoolIsSharedOrNot() {
    driver.note("memPoolCreate", call -> Long.toString(properties(call).maxBytes()));
    for (boolean shared : new boolean[] {true, false}) {
      new DeviceMemoryResource(cuda.device(0), DEVICE.withIpcEnabled(shared).withMaxBytes(3 << 20))
          .close();
      new PinnedMemoryResource(cuda, PINNED.withIpcEnabled(shared).withMaxBytes(5 << 20)).close();
      assertThat(driver.takeNotes()).containsExactly("" + (3 << 20), "" + (5 << 20));
    }
  }

  @Test
  void machineWithoutANearestNode_needsOneByName() {
    driver.note("memPoolCreate");
    for (boolean known : new boolean[] {true, false}) {
      driver.answer("deviceGetAttribute", call -> hostNode(call, known));
      assertThatThrownBy(() -> new PinnedMemoryResource(cuda, PINNED))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("withNumaId")
          .hasMessageContaining("CudaDevice.use");
    }
    assertThat(driver.notes()).as("before the driver").isEmpty();
    driver.unscript("deviceGetAttribute");
    try (var named = new PinnedMemoryResource(cuda, PINNED.withNumaId(0))) {
      assertThat(named.numaId()).isZero();
      assertThat(named.isIpcEnabled()).isTrue();
    }
  }

  @Test
  void otherSystemsThanLinux_sayItBeforeTheDriver() {
    driver.note("memPoolCreate");
    String system = System.getProperty("os.name");
    System.setProperty("os.name", "Windows 11");
    try {
      assertUnsupported(() -> new DeviceMemoryResource(cuda.device(0), DEVICE));
      assertUnsupported(() -> new PinnedMemoryResource(cuda, PINNED));
      assertUnsupported(() -> DeviceMemoryResource.fromAllocationHandle(cuda.device(0), 5));
      assertUnsupported(() -> PinnedMemoryResource.fromAllocationHandle(cuda, 5));
      assertUnsupported(() -> AllocationHandle.of(5));
      assertUnsupported(() -> IpcListener.open(Path.of("socket")));
      assertUnsupported(() -> IpcChannel.connect(Path.of("socket"), Duration.ZERO));
    } finally {
      System.setProperty("os.name", system);
    }
    assertThat(driver.notes()).isEmpty();
  }

  private static PoolProperties properties(DriverCall call) {
    return call.argument("properties", PoolProperties.class);
  }

  private static @Nullable Object hostNode(DriverCall call, boolean known) throws Throwable {
    if (call.number("attribute") != HOST_NUMA_ID) {
      return call.proceed();
    }
    if (!known) {
      throw new CudaException(CudaStatus.INVALID_VALUE, "cuDeviceGetAttribute", "no");
    }
    return -1;
  }

  private static void assertUnsupported(Runnable work) {
    assertThatThrownBy(work::run)
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("Linux")
        .hasMessageContaining("Windows 11");
  }
}
