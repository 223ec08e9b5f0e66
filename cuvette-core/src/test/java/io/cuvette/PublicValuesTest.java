package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaStatus;
import java.lang.foreign.MemorySegment;
import java.lang.reflect.RecordComponent;
import java.math.BigInteger;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Values of the public API: what goes in comes out, and what cannot be is refused by name. */
class PublicValuesTest {

  /** Numbers that are all different, and one value of each other type. */
  private static Object sample(Class<?> type, int number) {
    return switch (type.getSimpleName()) {
      case "int" -> number;
      case "long" -> (long) number;
      case "double" -> (double) number;
      case "boolean" -> true;
      case "String" -> "text " + number;
      case "Throwable" -> new IllegalStateException("place " + number);
      case "byte[]" -> new byte[] {(byte) number};
      case "List" -> List.of();
      case "Map" -> Map.of();
      default -> {
        assertThat(type.isEnum()).as("%s", type).isTrue();
        yield type.getEnumConstants()[1];
      }
    };
  }

  @ParameterizedTest
  @ValueSource(
      classes = {
        AsyncPoolChoice.Handle.class,
        AsyncPoolChoice.New.class,
        AsyncPoolOptions.class,
        ComputeCapability.class,
        CopyBox.Side.class,
        DeviceMemoryResourceOptions.class,
        Dim3.class,
        Fragmentation.class,
        GraphOptions.class,
        KernelCode.class,
        LeakReport.class,
        MemoryLimit.Bytes.class,
        MemoryLocation.Device.class,
        MemoryLocation.HostNuma.class,
        OpenObject.class,
        OutOfDeviceMemoryException.Details.class,
        PageStats.class,
        PinnedPoolStats.class,
        PoolStats.class,
        StreamOptions.class,
        IpcChannel.Message.class
      })
  void record_givesBackEachOfItsParts(Class<?> type) throws Exception {
    RecordComponent[] parts = type.getRecordComponents();
    Class<?>[] types = Stream.of(parts).map(RecordComponent::getType).toArray(Class<?>[]::new);
    Object[] given = new Object[parts.length];
    for (int i = 0; i < parts.length; i++) {
      given[i] = sample(types[i], i + 1);
    }
    var maker = type.getDeclaredConstructor(types);
    maker.setAccessible(true);
    Object made = maker.newInstance(given);
    for (int i = 0; i < parts.length; i++) {
      parts[i].getAccessor().setAccessible(true);
      assertThat(parts[i].getAccessor().invoke(made))
          .as("%s", parts[i].getName())
          .isEqualTo(given[i]);
    }
  }

  /** The record's own numbers too, which are no longer longs. */
  @Test
  void extentsBelowOne_areNamed() {
    for (int wrong : new int[] {0, -1, Integer.MIN_VALUE}) {
      String message = ": %d (expected: 1 to 2147483647)".formatted(wrong);
      assertThatThrownBy(() -> new Dim3(wrong, 1, 1)).hasMessage("x" + message);
      assertThatThrownBy(() -> new Dim3(1, wrong, 1)).hasMessage("y" + message);
      assertThatThrownBy(() -> new Dim3(1, 1, wrong)).hasMessage("z" + message);
      assertThatThrownBy(() -> Dim3.of(wrong, 1, 1)).hasMessage("x" + message);
      assertThatThrownBy(() -> Dim3.of(1, wrong, 1)).hasMessage("y" + message);
      assertThatThrownBy(() -> Dim3.of(1, 1, wrong)).hasMessage("z" + message);
    }
  }

  @Test
  void countOfADim3_isTheProduct_orTheMostThereIs() {
    List<Integer> sizes = new ArrayList<>(List.of(1, 3, 46_340, 65_537, 1_431_655_765));
    for (int bit = 1; bit < 31; bit += 3) {
      sizes.add(1 << bit);
    }
    sizes.add(Integer.MAX_VALUE);
    BigInteger most = BigInteger.valueOf(Long.MAX_VALUE);
    for (int x : sizes) {
      for (int y : sizes) {
        for (int z : sizes) {
          BigInteger product =
              BigInteger.valueOf(x).multiply(BigInteger.valueOf(y)).multiply(BigInteger.valueOf(z));
          assertThat(new Dim3(x, y, z).count())
              .as("%d, %d, %d", x, y, z)
              .isEqualTo(product.min(most).longValueExact());
        }
      }
    }
  }

  /** Whatever is free for a reason is free; only what is in whole pieces can be moved. */
  @Test
  void freeMemory_isThatOfAllReasons() {
    for (int reason = 0; reason < 5; reason++) {
      long[] bytes = new long[5];
      bytes[reason] = 60;
      Fragmentation one = fragmentation(bytes);
      assertThat(one.freeBytes()).isEqualTo(60);
      assertThat(one.ratio()).isEqualTo(reason == 0 ? 0 : 0.5);
    }
    assertThat(fragmentation(1, 2, 4, 8, 16).freeBytes()).isEqualTo(31);
    assertThat(fragmentation(1, 2, 4, 8, 16).ratio()).isEqualTo(0.25);
  }

  private static Fragmentation fragmentation(long... bytes) {
    return new Fragmentation(120, bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]);
  }

  private static void refused(String name, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith(name + ": ");
  }

  @Test
  void boxWithANegativeNumber_isRefused_byItsName() {
    CopyBox.Side side = new CopyBox.Side(0, 0, 0);
    refused("width", () -> new CopyBox(-1, 0, 0, side, side));
    refused("height", () -> new CopyBox(0, -1, 0, side, side));
    refused("depth", () -> new CopyBox(0, 0, -1, side, side));
    refused("depth", () -> CopyBox.of(1, 1, -1));
    refused("height", () -> CopyBox.of(1, Long.MIN_VALUE));
    Map<String, CopyBox.Side> wrong = new TreeMap<>();
    wrong.put("offset", new CopyBox.Side(-1, 4, 4));
    wrong.put("pitch", new CopyBox.Side(0, 3, 4));
    wrong.put("rows", new CopyBox.Side(0, 4, 3));
    wrong.forEach((name, each) -> {
      CopyBox.Side right = new CopyBox.Side(0, 4, 4);
      refused("source " + name, () -> new CopyBox(4, 4, 4, each, right));
      refused("target " + name, () -> new CopyBox(4, 4, 4, right, each));
    });
    assertThat(new CopyBox(0, 0, 0, side, side).byteSize()).isZero();
  }

  @Test
  void boxThatReachesBeyondAllMemory_isRefused_byItsSide() {
    CopyBox.Side right = new CopyBox.Side(0, 4, 4);
    CopyBox.Side last = new CopyBox.Side(Long.MAX_VALUE - 64, 4, 4);
    assertThat(new CopyBox(4, 4, 4, last, right).source()).isEqualTo(last);
    for (CopyBox.Side each :
        new CopyBox.Side[] {
          new CopyBox.Side(Long.MAX_VALUE - 63, 4, 4),
          new CopyBox.Side(0, 1L << 62, 4),
          new CopyBox.Side(0, 4, 1L << 62)
        }) {
      refused("source", () -> new CopyBox(4, 4, 4, each, right));
      refused("target", () -> new CopyBox(4, 4, 4, right, each));
    }
  }

  @Test
  void cacheWithoutRoom_isRefused_andALimitIsItsLimit() {
    ProgramCache cache = ProgramCache.in(Path.of("somewhere"));
    for (long bytes : new long[] {0, -1, Long.MIN_VALUE}) {
      refused("limitBytes", () -> cache.withLimit(bytes));
      refused("limitBytes", () -> new ProgramCache(null, bytes));
    }
    assertThat(cache.withLimit(1).limitBytes()).isEqualTo(1);
    assertThat(cache.withLimit(1).folder()).isEqualTo(cache.folder()).isAbsolute();
  }

  @Test
  void shortageOfPageLockedMemory_hasTheCauseOfThatOfTheDriver_andWhatWasSuppressed() {
    var details =
        new OutOfDeviceMemoryException.Details(
            0, 100, 512, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, RecoveryStep.DRIVER);
    for (int suppressed = 0; suppressed < 3; suppressed++) {
      var shortage = new OutOfDeviceMemoryException("call()", details, 0);
      if (suppressed > 0) {
        shortage.initCause(new IllegalStateException("cause"));
      }
      for (int i = 0; i < suppressed; i++) {
        shortage.addSuppressed(new IllegalStateException("suppressed " + i));
      }
      OutOfPinnedMemoryException pinned = OutOfPinnedMemoryException.of(shortage);
      assertThat(pinned.getCause()).isSameAs(shortage.getCause());
      assertThat(pinned.getSuppressed()).isEqualTo(shortage.getSuppressed());
      assertThat(pinned.requestedBytes()).isEqualTo(100);
      assertThat(pinned.call()).isEqualTo(shortage.call());
      assertThat(pinned.status()).isEqualTo(CudaStatus.OUT_OF_MEMORY);
    }
  }

  @Test
  void statisticsAsText_haveTheLimitIfThereIsOne() {
    long[] numbers = new long[17];
    assertThat(text(numbers, Long.MAX_VALUE)).endsWith("limit none");
    assertThat(text(numbers, 5L << 30)).endsWith("limit 5.00 GiB");
    assertThat(text(numbers, 0)).doesNotContain("none");
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = i < 8 || i > 10 ? (i + 1L) << 10 : i;
    }
    assertThat(text(numbers, 7))
        .isEqualTo(
            "used 1.00 KiB in 8 blocks, free 2.00 KiB in 9 blocks (largest 8.00 KiB),"
                + " held 3.00 KiB in 10 chunks, limit 7 B");
  }

  private static String text(long[] n, long limit) {
    return new PoolStats(
            n[0],
            n[1],
            n[2],
            n[3],
            n[4],
            n[5],
            n[6],
            n[7],
            (int) n[8],
            (int) n[9],
            (int) n[10],
            n[11],
            n[12],
            n[13],
            n[14],
            n[15],
            n[16],
            limit)
        .toString();
  }

  /** Each part of what a compilation is told, which two programs may differ in. */
  @Test
  void compilerOptions_areEqualIfAllIsThatWasGiven() {
    CompilerOptions none = CompilerOptions.DEFAULTS;
    List<CompilerOptions> all =
        List.of(
            none,
            none.withArchitecture("sm_90"),
            none.withArchitecture("sm_80"),
            none.withDefine("A"),
            none.withDefine("A", "1"),
            none.withFastMath(true),
            none.withDebug(true),
            none.withUndefine("A"),
            none.withIncludeFolder(Path.of("one")),
            none.withIncludeFolder(Path.of("two")),
            none.withHeader("a.h", "int a;"),
            none.withHeader("a.h", "int b;"),
            none.withNameExpression("f"),
            none.withNameExpression("g"),
            none.withNameExpression("f").withNameExpression("g"));
    for (int i = 0; i < all.size(); i++) {
      for (int j = 0; j < all.size(); j++) {
        assertThat(all.get(i).equals(all.get(j)))
            .as("%s and %s", all.get(i), all.get(j))
            .isEqualTo(i == j);
      }
    }
  }

  @Test
  void compilerWithoutAnArchitecture_isToldOfNone() {
    for (KernelCode.Kind kind : List.of(KernelCode.Kind.PTX, KernelCode.Kind.LTOIR)) {
      assertThat(CompilerOptions.DEFAULTS.arguments(kind))
          .noneMatch(argument -> argument.contains("architecture") || argument.contains("null"));
      assertThat(CompilerOptions.DEFAULTS.withArchitecture("sm_90").arguments(kind))
          .filteredOn(argument -> argument.contains("architecture"))
          .hasSize(1);
    }
  }

  @Test
  void rowsOfEachType_areSegmentsOfTheirArrays() {
    assertRows(HostRows.of(new byte[][] {{1, 2}, {}, {3}}), 2, 0, 1);
    assertRows(HostRows.of(new char[][] {{1, 2}, {}, {3}}), 4, 0, 2);
    assertRows(HostRows.of(new short[][] {{1, 2}, {}, {3}}), 4, 0, 2);
    assertRows(HostRows.of(new int[][] {{1, 2}, {}, {3}}), 8, 0, 4);
    assertRows(HostRows.of(new long[][] {{1, 2}, {}, {3}}), 16, 0, 8);
    assertRows(HostRows.of(new float[][] {{1, 2}, {}, {3}}), 8, 0, 4);
    assertRows(HostRows.of(new double[][] {{1, 2}, {}, {3}}), 16, 0, 8);
    assertRows(HostRows.of(List.of(new byte[2], new double[0], new int[1])), 2, 0, 4);
  }

  private static void assertRows(List<MemorySegment> rows, long... bytes) {
    assertThat(rows.stream().mapToLong(MemorySegment::byteSize))
        .containsExactlyElementsOf(Arrays.stream(bytes).boxed().toList());
  }

  @Test
  void placesWithoutANumber_haveThe0() {
    assertThat(MemoryLocation.host().id()).isZero();
    assertThat(MemoryLocation.hostNumaCurrent().id()).isZero();
  }

  @Test
  void fractionOfADevice_isWholeBytesOfIt_andOneAtLeast() {
    MemoryLimit third = MemoryLimit.ofFraction(0.3);
    for (long bytes = 1; bytes < 100; bytes++) {
      assertThat(third.bytesOf(bytes)).isEqualTo(Math.max(1, bytes * 3 / 10));
    }
    assertThat(MemoryLimit.ofFraction(1).bytesOf(Long.MAX_VALUE)).isEqualTo(Long.MAX_VALUE);
    assertThat(MemoryLimit.ofFraction(1e-300).bytesOf(Long.MAX_VALUE)).isEqualTo(1);
  }

  @Test
  void gridInClusters_hasTheSameBlocks_inEachDimension() {
    LaunchConfig config = LaunchConfig.of(new Dim3(12, 15, 14), Dim3.ONE);
    LaunchConfig clustered = config.inClustersOf(new Dim3(2, 3, 7));
    assertThat(clustered.grid()).isEqualTo(new Dim3(6, 5, 2));
    assertThat(clustered.cluster()).isEqualTo(new Dim3(2, 3, 7));
    assertThat(clustered.blocks()).isEqualTo(config.blocks());
    for (Dim3 wrong : new Dim3[] {new Dim3(5, 1, 1), new Dim3(1, 2, 1), new Dim3(1, 1, 3)}) {
      assertThatThrownBy(() -> config.inClustersOf(wrong))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void deviceOfTheProcess_isThatOfItsSettings() {
    assertThat(Environment.device()).isEqualTo(Environment.device(System::getenv)).isNotBlank();
  }
}
