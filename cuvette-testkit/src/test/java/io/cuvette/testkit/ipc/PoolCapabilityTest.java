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
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.PoolProperties;
import io.cuvette.instrument.ForwardingDriver;
import java.nio.file.Path;
import java.time.Duration;
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

  private final Limits limits = new Limits();
  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(limits::over));
  private final long before = OpenFiles.count();

  /** What the machine cannot do. */
  private static final class Limits {
    private boolean exportsPools = true;
    private boolean exportsDescriptors = true;
    private boolean knowsNode = true;
    private int node = 0;
    private int poolsAsked;
    private int poolsOpen;
    private long mostBytes;

    CudaDriver over(CudaDriver driver) {
      return new ForwardingDriver(driver) {
        @Override
        public long memPoolCreate(PoolProperties properties) {
          poolsAsked++;
          if (properties.handleTypes() != 0 && !exportsPools) {
            throw new CudaException(CudaStatus.NOT_SUPPORTED, "cuMemPoolCreate", "no");
          }
          mostBytes = properties.maxBytes();
          long pool = super.memPoolCreate(properties);
          poolsOpen++;
          return pool;
        }

        @Override
        public void memPoolDestroy(long pool) {
          super.memPoolDestroy(pool);
          poolsOpen--;
        }

        @Override
        public int memPoolExportToShareableHandle(long pool) {
          if (!exportsDescriptors) {
            throw new CudaException(CudaStatus.NOT_PERMITTED, "cuMemPoolExport…", "no");
          }
          return super.memPoolExportToShareableHandle(pool);
        }

        @Override
        public int deviceGetAttribute(int attribute, int device) {
          if (attribute != HOST_NUMA_ID) {
            return super.deviceGetAttribute(attribute, device);
          }
          if (!knowsNode) {
            throw new CudaException(CudaStatus.INVALID_VALUE, "cuDeviceGetAttribute", "no");
          }
          return node;
        }
      };
    }
  }

  @AfterEach
  void nothingIsLeft() {
    cuda.close();
    assertThat(OpenFiles.count()).isEqualTo(before);
  }

  @Test
  void driverThatRefusesSharedPools_isExplainedWithTheDevicesAttribute() {
    limits.exportsPools = false;
    assertThatThrownBy(() -> new DeviceMemoryResource(cuda.device(0), DEVICE))
        .isInstanceOfSatisfying(
            CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_SUPPORTED))
        .hasMessageContaining("MEMPOOL_SUPPORTED_HANDLE_TYPES");
    assertThatThrownBy(() -> new PinnedMemoryResource(cuda, PINNED))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("HOST_NUMA_MEMORY_POOLS_SUPPORTED");
    new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS).close();
  }

  @Test
  void driverThatRefusesTheExport_leavesNoPool() {
    limits.exportsDescriptors = false;
    assertThatThrownBy(() -> new DeviceMemoryResource(cuda.device(0), DEVICE))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cannot share");
    assertThatThrownBy(() -> new PinnedMemoryResource(cuda, PINNED))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cannot share");
    assertThat(limits.poolsAsked).isEqualTo(2);
    assertThat(limits.poolsOpen).isZero();
  }

  @Test
  void mostBytes_reachTheDriver_whetherThePoolIsSharedOrNot() {
    for (boolean shared : new boolean[] {true, false}) {
      new DeviceMemoryResource(cuda.device(0), DEVICE.withIpcEnabled(shared).withMaxBytes(3 << 20))
          .close();
      assertThat(limits.mostBytes).isEqualTo(3 << 20);
      new PinnedMemoryResource(cuda, PINNED.withIpcEnabled(shared).withMaxBytes(5 << 20)).close();
      assertThat(limits.mostBytes).isEqualTo(5 << 20);
    }
  }

  @Test
  void machineWithoutANearestNode_needsOneByName() {
    for (boolean known : new boolean[] {true, false}) {
      limits.knowsNode = known;
      limits.node = -1;
      assertThatThrownBy(() -> new PinnedMemoryResource(cuda, PINNED))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("withNumaId")
          .hasMessageContaining("CudaDevice.use");
    }
    assertThat(limits.poolsAsked).as("before the driver").isZero();
    try (var named = new PinnedMemoryResource(cuda, PINNED.withNumaId(0))) {
      assertThat(named.numaId()).isZero();
      assertThat(named.isIpcEnabled()).isTrue();
    }
  }

  @Test
  void otherSystemsThanLinux_sayItBeforeTheDriver() {
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
    assertThat(limits.poolsAsked).isZero();
  }

  private static void assertUnsupported(Runnable work) {
    assertThatThrownBy(work::run)
        .isInstanceOf(UnsupportedOperationException.class)
        .hasMessageContaining("Linux")
        .hasMessageContaining("Windows 11");
  }
}
