package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.PotentialBlockSize;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Launches and occupancy reach their function with the configuration as the driver reads it. */
class FfmLaunchCallsTest {
  private static final long BIG = 0x7654_3210_fedcL;
  private static final LaunchShape PLAIN =
      new LaunchShape(2, 3, 4, 32, 5, 6, 1, 1, 1, 1024, false, false);
  private static final LaunchShape FULL =
      new LaunchShape(8, 6, 4, 32, 1, 1, 4, 3, 2, -1, true, true);
  private static final LaunchParameters NONE = new LaunchParameters(MemorySegment.NULL, List.of());

  private StubLibrary library;
  private CudaDriver driver;

  @BeforeEach
  void open(@TempDir Path folder) {
    library = StubLibrary.compile(folder);
    driver = library.open();
    library.makeCurrent(0);
    library.reset();
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private void noted(String call) {
    assertThat(library.calls()).contains(call + " in c001");
  }

  /** Its stream names the context. */
  private void launched(String call) {
    assertThat(library.calls())
        .contains("cuLaunchKernelEx@11060(" + call + ") in 0")
        .noneMatch(other -> other.startsWith("cuCtx"));
  }

  @Test
  void launchesInDefaultStreams_andThoseThatTheDriverRefuses_getTheContext() {
    for (long stream = 0; stream <= 2; stream++) {
      library.makeCurrent(0);
      driver.kernels().launchKernel(1, stream, BIG, PLAIN, NONE);
      noted("cuLaunchKernelEx@11060(76543210fedc, 0, {2 3 4, 32 5 6, 1024, " + stream + "})");
    }
    for (int status : new int[] {201, 400, 709}) {
      library.reset();
      library.makeCurrent(0xc000);
      library.fail("cuLaunchKernelEx", status);
      assertThatThrownBy(() -> driver.kernels().launchKernel(1, 9, 7, PLAIN, NONE))
          .isInstanceOf(CudaException.class);
      assertThat(library.calls())
          .containsExactly(
              "cuLaunchKernelEx@11060(7, 0, {2 3 4, 32 5 6, 1024, 9}) in c000",
              "cuCtxSetCurrent@4000(c001) in c000",
              "cuLaunchKernelEx@11060(7, 0, {2 3 4, 32 5 6, 1024, 9}) in c001",
              "cuCtxSetCurrent@4000(c000) in c001");
    }
  }

  @Test
  void shapeAndStream_arePassed() {
    driver.kernels().launchKernel(1, 9, BIG, PLAIN, NONE);
    launched("76543210fedc, 0, {2 3 4, 32 5 6, 1024, 9}");
  }

  @Test
  void attributes_arePassed_andGoneWithTheNextLaunch() {
    driver.kernels().launchKernel(1, BIG, 7, FULL, NONE);
    launched(
        "7, 0, {8 6 4, 32 1 1, 4294967295, 76543210fedc, cluster 4 3 2,"
            + " cooperative 1, programmatic 1}");
    library.reset();
    driver.kernels().launchKernel(1, 9, 7, PLAIN, NONE);
    launched("7, 0, {2 3 4, 32 5 6, 1024, 9}");
  }

  @Test
  void eachParameter_isReadAtItsPlace() {
    MemorySegment values = Arena.ofAuto().allocate(32, 8);
    values.set(ValueLayout.JAVA_INT, 0, 11);
    values.set(ValueLayout.JAVA_INT, 8, 12);
    values.set(ValueLayout.JAVA_INT, 28, -13);
    LaunchParameters parameters =
        new LaunchParameters(
            values,
            List.of(
                new KernelParameter(0, 4), new KernelParameter(8, 8), new KernelParameter(28, 4)));
    for (LaunchParameters each : List.of(parameters, parameters.watchedBy((_, _, _) -> {}))) {
      library.reset();
      library.answer(3, 0);
      driver.kernels().launchKernel(1, 9, 7, PLAIN, each);
      launched("7, 0, {2 3 4, 32 5 6, 1024, 9}, 11, 12, -13");
    }
  }

  @Test
  void parameters_mustBeNativeMemory_andInsideIt() {
    assertThatThrownBy(() -> new LaunchParameters(MemorySegment.ofArray(new byte[8]), List.of()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("heap segment");
    MemorySegment values = Arena.ofAuto().allocate(8);
    assertThatThrownBy(() -> new LaunchParameters(values, List.of(new KernelParameter(1, 8))))
        .isInstanceOf(IndexOutOfBoundsException.class);
  }

  @Test
  void attributesOfKernels_areReadAndSetForADevice() {
    library.answer(1024, 0);
    assertThat(driver.kernels().kernelGetAttribute(0, BIG, 1)).isEqualTo(1024);
    driver.kernels().kernelSetAttribute(8, 98_304, BIG, 1);
    assertThat(library.calls())
        .contains("cuKernelGetAttribute@12000(0, 76543210fedc, 41) in 0")
        .contains("cuKernelSetAttribute@12000(8, 98304, 76543210fedc, 41) in 0");
  }

  @Test
  void occupancy_isAskedInTheContextOfTheDevice() {
    library.answer(4, 0);
    assertThat(driver.kernels().occupancyMaxActiveBlocksPerMultiprocessor(1, BIG, 256, 1L << 33))
        .isEqualTo(4);
    noted("cuOccupancyMaxActiveBlocksPerMultiprocessor@6050(76543210fedc, 256, 8589934592)");
    library.answer(264, 1024);
    assertThat(driver.kernels().occupancyMaxPotentialBlockSize(1, BIG, 48, 512))
        .isEqualTo(new PotentialBlockSize(264, 1024));
    noted("cuOccupancyMaxPotentialBlockSize@6050(76543210fedc, 0, 48, 512)");
    library.answer(1L << 33, 0);
    assertThat(driver.kernels().occupancyAvailableDynamicSMemPerBlock(1, BIG, 2, 256))
        .isEqualTo(1L << 33);
    noted("cuOccupancyAvailableDynamicSMemPerBlock@10020(76543210fedc, 2, 256)");
  }

  @Test
  void clusters_areAskedWithTheShape() {
    library.answer(16, 0);
    assertThat(driver.kernels().occupancyMaxActiveClusters(1, BIG, FULL)).isEqualTo(16);
    noted(
        "cuOccupancyMaxActiveClusters@11070(76543210fedc, {8 6 4, 32 1 1, 4294967295, 0,"
            + " cluster 4 3 2, cooperative 1, programmatic 1})");
    library.answer(8, 0);
    assertThat(driver.kernels().occupancyMaxPotentialClusterSize(1, BIG, PLAIN)).isEqualTo(8);
    noted("cuOccupancyMaxPotentialClusterSize@11070(76543210fedc, {2 3 4, 32 5 6, 1024, 0})");
  }

  @Test
  void failures_nameTheCall() {
    library.fail("cuLaunchKernelEx", 1);
    assertThatThrownBy(() -> driver.kernels().launchKernel(1, 9, 7, PLAIN, NONE))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cuLaunchKernelEx(kernel=0x7, ")
        .hasMessageContaining("gridX=2")
        .hasMessageContaining("stream=0x9, device=1)");
    library.fail("cuOccupancyMaxPotentialBlockSize", 1);
    assertThatThrownBy(() -> driver.kernels().occupancyMaxPotentialBlockSize(1, 7, 48, 512))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("cuOccupancyMaxPotentialBlockSize(kernel=0x7, ");
  }
}
