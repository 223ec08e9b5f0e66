package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.KernelCalls;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Assumptions;

/**
 * What every driver promises about kernels and their libraries. Extend it in the tests of a driver.
 */
public abstract class DriverKernelContract {

  private static final int COUNT = 1000;
  private static final int COMPUTE_CAPABILITY_MAJOR = 75;
  private static final int COOPERATIVE_LAUNCH = 95;
  private static final int HOPPER = 9;

  /** For subclasses. */
  protected DriverKernelContract() {
    KernelTwins.register();
  }

  private static byte[] code() {
    return KernelTwins.code("kernels.ptx");
  }

  /** A library that is loaded, on a stream of its own. */
  private record Loaded(CudaDriver driver, long library, long stream) implements AutoCloseable {
    static Loaded of(CudaDriver driver, String file) {
      return new Loaded(
          driver,
          driver.kernels().libraryLoadData(KernelTwins.code(file)),
          driver.streams().streamCreateWithPriority(0, 1, 0));
    }

    long find(String kernel) {
      return driver.kernels().libraryGetKernel(library, kernel);
    }

    /** Launches a kernel with arguments that are bytes, shorts, ints, longs, doubles, segments. */
    void launch(String name, LaunchShape shape, Object... arguments) {
      long kernel = find(name);
      List<KernelParameter> places =
          IntStream.range(0, arguments.length)
              .mapToObj(index -> driver.kernels().kernelGetParamInfo(kernel, index))
              .toList();
      long bytes = places.isEmpty() ? 8 : places.getLast().offset() + places.getLast().size();
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment values = arena.allocate(bytes, Long.BYTES);
        for (int i = 0; i < arguments.length; i++) {
          put(values.asSlice(places.get(i).offset(), places.get(i).size()), arguments[i]);
        }
        driver
            .kernels()
            .launchKernel(0, stream, kernel, shape, new LaunchParameters(values, places));
      }
    }

    private static void put(MemorySegment place, Object argument) {
      switch (argument) {
        case Byte value -> place.set(ValueLayout.JAVA_BYTE, 0, value);
        case Short value -> place.set(ValueLayout.JAVA_SHORT, 0, value);
        case Integer value -> place.set(ValueLayout.JAVA_INT, 0, value);
        case Long value -> place.set(ValueLayout.JAVA_LONG, 0, value);
        case Double value -> place.set(ValueLayout.JAVA_DOUBLE, 0, value);
        default -> place.copyFrom((MemorySegment) argument);
      }
    }

    long upload(int... numbers) {
      long address = driver.memory().memAlloc(0, numbers.length * 4L);
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment source = arena.allocateFrom(ValueLayout.JAVA_INT, numbers);
        driver.transfers().memcpyHtoDAsync(0, address, source, stream);
        driver.streams().streamSynchronize(0, stream);
      }
      return address;
    }

    /** Gives numbers that the stream has written, and frees their memory. */
    int[] take(long address, int count) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment target = arena.allocate(ValueLayout.JAVA_INT, count);
        driver.transfers().memcpyDtoHAsync(0, target, address, stream);
        driver.streams().streamSynchronize(0, stream);
        driver.memory().memFree(0, address);
        return target.toArray(ValueLayout.JAVA_INT);
      }
    }

    @Override
    public void close() {
      driver.streams().streamDestroy(0, stream);
      driver.kernels().libraryUnload(library);
    }
  }

  private static LaunchShape shape(int blocks, int threads, int sharedBytes) {
    return new LaunchShape(blocks, 1, 1, threads, 1, 1, 1, 1, 1, sharedBytes, false, false);
  }

  private static LaunchShape cooperative(int blocks, int threads) {
    return new LaunchShape(blocks, 1, 1, threads, 1, 1, 1, 1, 1, 0, true, false);
  }

  private static LaunchShape clusters(int blocks, int cluster) {
    return new LaunchShape(blocks, 1, 1, 1, 1, 1, cluster, 1, 1, 0, false, false);
  }

  private static int attribute(CudaDriver driver, int number) {
    return driver.devices().deviceGetAttribute(number, 0);
  }

  private static int[] numbers(int count) {
    return IntStream.range(0, count).map(i -> i * 7919 % 1000).toArray();
  }

  /**
   * A kernel does its work with the arguments that it was given, in order of its stream.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void vectors_areAdded(CudaDriver driver) {
    try (Loaded loaded = Loaded.of(driver, "kernels.ptx")) {
      int[] bits = IntStream.range(0, COUNT).map(i -> Float.floatToRawIntBits(i / 4f)).toArray();
      long a = loaded.upload(bits);
      long b = loaded.upload(bits);
      long sum = loaded.upload(new int[COUNT]);
      loaded.launch("add", shape(8, 128, 0), a, b, sum, COUNT);
      loaded.launch("add", shape(8, 128, 0), sum, b, sum, COUNT);
      int[] result = loaded.take(sum, COUNT);
      for (int i = 0; i < COUNT; i++) {
        assertThat(Float.intBitsToFloat(result[i])).isEqualTo(3 * (i / 4f));
      }
      driver.memory().memFree(0, a);
      driver.memory().memFree(0, b);
    }
  }

  /**
   * Arguments of all sizes, and a structure by value, arrive.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void argumentsOfAllSizes_arrive(CudaDriver driver) {
    try (Loaded loaded = Loaded.of(driver, "kernels.ptx");
        Arena arena = Arena.ofConfined()) {
      MemorySegment pair = arena.allocate(16, 8);
      pair.set(ValueLayout.JAVA_FLOAT, 0, 0.5f);
      pair.set(ValueLayout.JAVA_DOUBLE, 8, 1e9);
      long out = loaded.upload(0, 0);
      loaded.launch("nothing", shape(3, 5, 0));
      loaded.launch("mixed", shape(1, 1, 0), (byte) -7, (short) -300, 0.5, pair, out);
      int[] result = loaded.take(out, 2);
      assertThat(Integer.toUnsignedLong(result[0]) | (long) result[1] << 32)
          .isEqualTo(1_000_000_001L - 307);
    }
  }

  /**
   * Shared memory that the code declares, that the launch sizes, and atomics.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void blocks_shareMemory(CudaDriver driver) {
    try (Loaded loaded = Loaded.of(driver, "kernels.ptx")) {
      int[] numbers = numbers(COUNT);
      long in = loaded.upload(numbers);
      long out = loaded.upload(new int[4]);
      loaded.launch("sums", shape(4, 256, 0), in, out, COUNT);
      int[] sums = loaded.take(out, 4);
      for (int block = 0; block < 4; block++) {
        int end = Math.min(COUNT, 256 * (block + 1));
        assertThat(sums[block]).isEqualTo(Arrays.stream(numbers, 256 * block, end).sum());
      }
      loaded.launch("reverse", shape(10, 100, 400), in);
      long bins = loaded.upload(new int[256]);
      loaded.launch("histogram", shape(3, 64, 0), in, 4 * COUNT, bins);
      int[] histogram = loaded.take(bins, 256);
      int[] reversed = loaded.take(in, COUNT);
      int[] expected = new int[256];
      for (int i = 0; i < COUNT; i++) {
        assertThat(reversed[i]).isEqualTo(numbers[i / 100 * 100 + 99 - i % 100]);
        for (int shift = 0; shift < 32; shift += 8) {
          expected[numbers[i] >>> shift & 0xFF]++;
        }
      }
      assertThat(histogram).isEqualTo(expected);
    }
  }

  /**
   * All blocks of a cooperative launch can wait for each other.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void cooperativeGrids_wait(CudaDriver driver) {
    Assumptions.assumeTrue(attribute(driver, COOPERATIVE_LAUNCH) == 1, "no cooperative launches");
    try (Loaded loaded = Loaded.of(driver, "kernels.ptx")) {
      long counter = loaded.upload(0);
      long seen = loaded.upload(new int[8 * 32]);
      loaded.launch("meet", cooperative(8, 32), counter, seen);
      assertThat(loaded.take(seen, 8 * 32)).containsOnly(8 * 32);
      Refused.with(
          CudaStatus.COOPERATIVE_LAUNCH_TOO_LARGE,
          () -> loaded.launch("meet", cooperative(1 << 20, 1024), counter, seen));
      driver.memory().memFree(0, counter);
    }
  }

  /**
   * The blocks of a cluster see each other's shared memory.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void clusters_seeEachOther(CudaDriver driver) {
    Assumptions.assumeTrue(
        attribute(driver, COMPUTE_CAPABILITY_MAJOR) >= HOPPER, "no clusters on this device");
    try (Loaded loaded = Loaded.of(driver, "clusters.ptx")) {
      long out = loaded.upload(new int[6]);
      loaded.launch("neighbours", clusters(6, 3), out);
      Refused.with(
          CudaStatus.INVALID_CLUSTER_SIZE, () -> loaded.launch("neighbours", clusters(6, 4), out));
      Refused.with(
          CudaStatus.INVALID_CLUSTER_SIZE,
          () -> loaded.launch("neighbours", clusters(32, 16), out));
      assertThat(loaded.take(out, 6)).containsExactly(1, 2, 0, 4, 5, 3);
    }
  }

  /**
   * What no device can run is refused at once, and the stream goes on.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void impossibleShapes_areRefused(CudaDriver driver) {
    try (Loaded loaded = Loaded.of(driver, "kernels.ptx")) {
      LaunchShape[] wrong = {
        shape(0, 1, 0), shape(1, 0, 0), shape(1, 1025, 0), shape(1 << 31, 1, 0), shape(1, 1, 49_153)
      };
      for (LaunchShape shape : wrong) {
        Refused.with(CudaStatus.INVALID_VALUE, () -> loaded.launch("nothing", shape));
      }
      driver.streams().streamSynchronize(0, loaded.stream());
    }
  }

  /**
   * Attributes are those of the code, and a kernel may opt in to more shared memory.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void attributes_areReadAndSet(CudaDriver driver) {
    KernelCalls kernels = driver.kernels();
    try (Loaded loaded = Loaded.of(driver, "kernels.ptx")) {
      long sums = loaded.find("sums");
      assertThat(kernels.kernelGetAttribute(0, sums, 0)).isEqualTo(1024);
      assertThat(kernels.kernelGetAttribute(1, sums, 0)).isEqualTo(1024);
      assertThat(kernels.kernelGetAttribute(8, sums, 0)).isEqualTo((48 << 10) - 1024);
      int most = attribute(driver, 97);
      long reverse = loaded.find("reverse");
      kernels.kernelSetAttribute(8, most, reverse, 0);
      assertThat(kernels.kernelGetAttribute(8, reverse, 0)).isEqualTo(most);
      Refused.with(
          CudaStatus.INVALID_VALUE, () -> kernels.kernelSetAttribute(8, most + 1, reverse, 0));
      long numbers = loaded.upload(numbers(64));
      loaded.launch("reverse", shape(1, 64, most), numbers);
      assertThat(loaded.take(numbers, 64)[63]).isEqualTo(numbers(64)[0]);
      assertThat(kernels.occupancyMaxActiveBlocksPerMultiprocessor(0, sums, 256, 0)).isPositive();
      assertThat(kernels.occupancyMaxPotentialBlockSize(0, sums, 0, 128).blockThreads())
          .isBetween(1, 128);
      assertThat(kernels.occupancyAvailableDynamicSMemPerBlock(0, sums, 1, 256)).isPositive();
    }
  }

  /**
   * The kernels of PTX are found by name, each time with the same handle, and listed.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void kernels_areFoundByName_andListed(CudaDriver driver) {
    KernelCalls kernels = driver.kernels();
    long library = kernels.libraryLoadData(code());
    long add = kernels.libraryGetKernel(library, "add");
    assertThat(kernels.libraryGetKernel(library, "add")).isEqualTo(add);
    assertThat(kernels.libraryGetKernelCount(library)).isEqualTo(7);
    assertThat(
            Arrays.stream(kernels.libraryEnumerateKernels(library, 7))
                .mapToObj(kernels::kernelGetName))
        .containsExactlyInAnyOrder(
            "add", "nothing", "mixed", "sums", "reverse", "histogram", "meet");
    Refused.with(CudaStatus.NOT_FOUND, () -> kernels.libraryGetKernel(library, "subtract"));
    kernels.libraryUnload(library);
  }

  /**
   * Each parameter has its place as in a C structure, and behind the last there is none.
   *
   * @param driver the driver under test
   */
  @CudaTest
  public void parameters_lieAsInAStructure(CudaDriver driver) {
    KernelCalls kernels = driver.kernels();
    long library = kernels.libraryLoadData(code());
    long mixed = kernels.libraryGetKernel(library, "mixed");
    long[][] expected = {{0, 1}, {2, 2}, {8, 8}, {16, 16}, {32, 8}};
    for (int i = 0; i < expected.length; i++) {
      assertThat(kernels.kernelGetParamInfo(mixed, i))
          .isEqualTo(new KernelParameter(expected[i][0], expected[i][1]));
    }
    Refused.with(CudaStatus.INVALID_VALUE, () -> kernels.kernelGetParamInfo(mixed, 5));
    long nothing = kernels.libraryGetKernel(library, "nothing");
    Refused.with(CudaStatus.INVALID_VALUE, () -> kernels.kernelGetParamInfo(nothing, 0));
    kernels.libraryUnload(library);
  }
}
