package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaStatus;
import io.cuvette.instrument.DriverProxy;
import io.cuvette.testkit.DocumentedErrors.Row;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The table of documented errors has what the seam has and what the header of the driver says. */
class DocumentedErrorsTest {
  /**
   * No functions of cuda.h: other libraries of the toolkit, C functions of the user, the JVM
   * itself.
   */
  private static final Set<String> NOT_OF_THE_DRIVER =
      Set.of(
          "runtimeGetVersion",
          "callMalloc",
          "callFree",
          "hostView",
          "mathLibraryVersion",
          "mathHandleCreate",
          "mathHandleDestroy",
          "mathHandleSetStream",
          "mathHandleSetWorkspace",
          "gemm");

  private static final Pattern ERROR = Pattern.compile("::CUDA_ERROR_(\\w+)");
  private static final String VERSION = "#define CUDA_VERSION 13000";

  @Test
  void everyMethodOfTheSeam_hasARow() {
    List<String> methods =
        DriverProxy.methods().stream()
            .filter(method -> method.getDeclaringClass() != CudaDriver.class)
            .map(Method::getName)
            .filter(name -> !NOT_OF_THE_DRIVER.contains(name))
            .toList();

    assertThat(DocumentedErrors.rows())
        .extracting(Row::method)
        .containsExactlyInAnyOrderElementsOf(methods);
  }

  @Test
  void errorsOfEarlierWork_areAmongThem_andAnAnswerIsNot() {
    assertThat(DocumentedErrors.of("memAlloc"))
        .contains(CudaStatus.OUT_OF_MEMORY, CudaStatus.LAUNCH_FAILED);
    assertThat(DocumentedErrors.of("memPoolDestroy")).containsExactly(CudaStatus.INVALID_VALUE);
    assertThat(DocumentedErrors.of("eventQuery")).doesNotContain(CudaStatus.NOT_READY);
    assertThat(DocumentedErrors.of("callMalloc")).isEmpty();
  }

  @Test
  void everyRow_isWhatTheHeaderSays() throws IOException {
    String header = header();
    for (Row row : DocumentedErrors.rows()) {
      Set<CudaStatus> listed = EnumSet.noneOf(CudaStatus.class);
      boolean earlier = false;
      for (String function : row.functions()) {
        String text = comment(header, function);
        earlier |= text.contains("\\notefnerr");
        String list = text.replaceFirst("(?s).*\\\\returns?", "").split("\\\\note|\\\\sa", -1)[0];
        Matcher error = ERROR.matcher(text.contains("\\return") ? list : "");
        while (error.find()) {
          listed.add(CudaStatus.valueOf(error.group(1)));
        }
      }
      assertThat(row.listed()).as(row.method()).isEqualTo(listed);
      assertThat(row.reportsEarlier()).as(row.method()).isEqualTo(earlier);
    }
  }

  /** The comment before the declaration of a function. */
  private static String comment(String header, String function) {
    int end = header.indexOf(" CUDAAPI " + function + "(");
    assertThat(end).as(function).isPositive();
    return header.substring(header.lastIndexOf("\\brief", end), end);
  }

  private static String header() throws IOException {
    Path local = Path.of("/usr/local");
    if (Files.isDirectory(local)) {
      try (Stream<Path> folders = Files.list(local)) {
        for (Path folder : folders.toList()) {
          Path header = folder.resolve("include/cuda.h");
          if (Files.isRegularFile(header)) {
            String text = Files.readString(header, StandardCharsets.UTF_8);
            if (text.contains(VERSION)) {
              Path profiler = header.resolveSibling("cudaProfiler.h");
              return text + Files.readString(profiler, StandardCharsets.UTF_8);
            }
          }
        }
      }
    }
    assumeTrue(false, "no cuda.h of CUDA 13.0 is installed");
    return "";
  }
}
