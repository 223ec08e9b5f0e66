package io.cuvette.array.internal.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.array.ElementType;
import io.cuvette.driver.KernelParameter;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.sim.SimulatedParameter;
import io.cuvette.testkit.CudaTest;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/** The kernels that are shipped are those of the source, and each has its twin. */
class KernelSetTest {
  private static final List<String> SOURCES =
      List.of(
          "common.cu",
          "elements.cu",
          "functions.cuh",
          "loop.cuh",
          "reduce.cuh",
          "types.cuh",
          "build.sh");
  private static final Pattern ENTRY = Pattern.compile("\\.entry\\s+(\\w+)");
  private static final long MOST_BYTES = 1_500_000;

  private static byte[] resource(String name) throws IOException {
    try (InputStream in =
        Objects.requireNonNull(
            KernelSetTest.class.getResourceAsStream("/io/cuvette/array/cuda/" + name), name)) {
      return in.readAllBytes();
    }
  }

  @Test
  void code_isThatOfTheSource() throws Exception {
    MessageDigest hash = MessageDigest.getInstance("SHA-256");
    for (String source : SOURCES) {
      hash.update(resource(source));
    }
    assertThat(new String(resource("ptx/sources.sha256"), StandardCharsets.US_ASCII).strip())
        .as("of the sources that were compiled; build.sh compiles them anew")
        .isEqualTo(HexFormat.of().formatHex(hash.digest()));
  }

  private static TreeSet<String> modules() {
    TreeSet<String> modules = new TreeSet<>(List.of("common"));
    for (ElementType type : ElementType.values()) {
      modules.add(KernelNames.tag(type) + "_elements");
      modules.add(KernelNames.tag(type) + "_reductions");
      if (type.isFloating()) {
        modules.add(KernelNames.tag(type) + "_maths");
      }
    }
    return modules;
  }

  @Test
  void code_isSmall_andForDriversSinceCuda12() throws Exception {
    long bytes = 0;
    for (String module : modules()) {
      bytes += resource("ptx/" + module + ".ptx.gz").length;
      assertThat(new String(KernelSet.ptx(module), StandardCharsets.US_ASCII))
          .startsWith(".version 8.0\n.target sm_75\n");
    }
    assertThat(bytes).isLessThan(MOST_BYTES);
  }

  @Test
  void eachKernel_hasATwin_andEachTwinAKernel() {
    TreeSet<String> kernels = new TreeSet<>();
    for (String module : modules()) {
      Matcher entry = ENTRY.matcher(new String(KernelSet.ptx(module), StandardCharsets.US_ASCII));
      while (entry.find()) {
        assertThat(kernels.add(entry.group(1))).isTrue();
      }
    }
    TreeSet<String> twins = new TreeSet<>();
    KernelTwins.all().forEach(each -> twins.add(each.name()));
    assertThat(twins).isEqualTo(kernels);
  }

  @CudaTest
  void kernels_haveTheParametersOfTheirTwins(Cuda cuda) {
    for (SimulatedKernel twin : KernelTwins.all()) {
      CudaKernel kernel = KernelSet.kernel(cuda, place(twin.name()));
      List<Long> expected =
          twin.parameters().stream().map(SimulatedParameter::byteSize).map(Long::valueOf).toList();
      kernel
          .parameters()
          .ifPresent(known ->
              assertThat(known.stream().map(KernelParameter::size).toList())
                  .as(twin.name())
                  .isEqualTo(expected));
    }
  }

  private static KernelNames.Place place(String kernel) {
    for (String module : modules()) {
      String text = new String(KernelSet.ptx(module), StandardCharsets.US_ASCII);
      if (text.contains(".entry " + kernel + "(")) {
        return new KernelNames.Place(module, kernel);
      }
    }
    throw new AssertionError(kernel);
  }
}
