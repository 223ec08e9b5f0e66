package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.LeakLevel;
import io.cuvette.PinnedMemoryResourceOptions;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/**
 * An exporter and an importer over two simulated drivers, which know of each other as little as two
 * processes do. After each test nothing is open: no descriptor, and nothing in the drivers.
 */
@EnabledOnOs(OS.LINUX)
@Timeout(180)
abstract class TwoProcesses {
  static final long KIB = 1L << 10;
  static final long MIB = 1L << 20;
  static final DeviceMemoryResourceOptions SHARED =
      DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);
  static final PinnedMemoryResourceOptions PINNED =
      PinnedMemoryResourceOptions.DEFAULTS.withIpcEnabled(true);

  private long before;
  private SimulatedDriver exporterDriver;
  private SimulatedDriver importerDriver;
  Cuda exporter;
  Cuda importer;

  @BeforeEach
  void openBoth() {
    before = OpenFiles.count();
    exporterDriver = driver();
    importerDriver = driver();
    exporter = cuda(exporterDriver);
    importer = cuda(importerDriver);
  }

  private static SimulatedDriver driver() {
    return SimulatedDriver.open(SimulatedOptions.parse("devices=2").withMemoryBytes(256 * MIB));
  }

  private static Cuda cuda(SimulatedDriver driver) {
    return Cuda.open(CudaOptions.DEFAULTS.withDriver(driver).withLeakLevel(LeakLevel.FULL));
  }

  @AfterEach
  void nothingIsLeft() {
    importer.close();
    exporter.close();
    assertThat(importerDriver.report().isEmpty()).as("%s", importerDriver.report()).isTrue();
    assertThat(exporterDriver.report().isEmpty()).as("%s", exporterDriver.report()).isTrue();
    assertThat(OpenFiles.count()).as("descriptors").isLessThanOrEqualTo(before);
  }

  SimulatedDriver importerDriver() {
    return importerDriver;
  }

  CudaDevice here() {
    return exporter.device(0);
  }

  CudaDevice there() {
    return importer.device(0);
  }

  DeviceMemoryResource shared() {
    return new DeviceMemoryResource(here(), SHARED);
  }

  /** The importer's side of a resource. */
  DeviceMemoryResource mapped(DeviceMemoryResource resource) {
    return DeviceMemoryResource.fromAllocationHandle(there(), resource.allocationHandle());
  }

  static byte[] bytes(Buffer buffer) {
    byte[] bytes = new byte[(int) buffer.byteSize()];
    buffer.copyTo(MemorySegment.ofArray(bytes));
    return bytes;
  }

  static byte[] pattern(long count, int seed) {
    byte[] bytes = new byte[(int) count];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }

  static void put(Buffer buffer, byte[] bytes) {
    buffer.copyFrom(MemorySegment.ofArray(bytes));
  }

  static byte first(MemorySegment segment) {
    return segment.get(ValueLayout.JAVA_BYTE, 0);
  }
}
