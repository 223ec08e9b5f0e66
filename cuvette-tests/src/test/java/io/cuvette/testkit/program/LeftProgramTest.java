package io.cuvette.testkit.program;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.KernelCode;
import io.cuvette.KernelCode.Kind;
import io.cuvette.LinkerOptions;
import io.cuvette.driver.CompilerCalls;
import io.cuvette.driver.CompilerException;
import io.cuvette.driver.LinkerCalls;
import io.cuvette.internal.program.Compilation;
import io.cuvette.internal.program.Linkage;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.Test;

/** A program of the compiler that stays behind: the code is there, and nobody else would know. */
class LeftProgramTest {

  private static CompilerCalls compiler() {
    return (CompilerCalls)
        Proxy.newProxyInstance(
            CompilerCalls.class.getClassLoader(),
            new Class<?>[] {CompilerCalls.class},
            (_, method, _) ->
                switch (method.getName()) {
                  case "createProgram" -> 1L;
                  case "getProgramLog" -> "";
                  case "getPtx" -> "code".getBytes(StandardCharsets.UTF_8);
                  case "destroyProgram" ->
                      throw new CompilerException("nvrtcDestroyProgram()", 4, "by the test", "");
                  default -> null;
                });
  }

  private static LinkerCalls linker() {
    return (LinkerCalls)
        Proxy.newProxyInstance(
            LinkerCalls.class.getClassLoader(),
            new Class<?>[] {LinkerCalls.class},
            (_, method, _) ->
                switch (method.getName()) {
                  case "library" -> "the linker's library";
                  case "create" -> 1L;
                  case "getErrorLog", "getInfoLog" -> "";
                  case "getLinkedCubin" -> "code".getBytes(StandardCharsets.UTF_8);
                  case "destroy" ->
                      throw new CompilerException("nvJitLinkDestroy()", 4, "by the test", "");
                  default -> null;
                });
  }

  /** What is logged while code is made, as it should be all the same. */
  private static LogRecord told(Supplier<KernelCode> making) {
    List<LogRecord> told = new ArrayList<>();
    long thread = Thread.currentThread().threadId();
    Logger log = Logger.getLogger("io.cuvette.compiler");
    log.setFilter(record -> record.getLongThreadID() != thread || !told.add(record));
    try {
      assertThat(making.get().bytes()).asString(StandardCharsets.UTF_8).isEqualTo("code");
    } finally {
      log.setFilter(null);
    }
    assertThat(told).hasSize(1);
    assertThat(told.getFirst().getLevel()).isEqualTo(Level.WARNING);
    assertThat(told.getFirst().getThrown()).isInstanceOf(CompilerException.class);
    return told.getFirst();
  }

  @Test
  void programThatCannotBeDestroyed_isToldToTheLog() {
    Compilation compilation =
        new Compilation(
            compiler(),
            Kind.PTX,
            "source",
            "p.cu",
            List.of(),
            List.of(),
            Map.of(),
            Set.of(),
            Optional.empty());
    assertThat(told(() -> compilation.run(Optional.empty())).getMessage())
        .isEqualTo("a program of NVRTC is left behind");
  }

  @Test
  void linkerThatCannotBeDestroyed_isToldToTheLog_withItsLibrary() {
    KernelCode input = KernelCode.of(Kind.CUBIN, new byte[] {1});
    Linkage linkage = new Linkage(linker(), Kind.CUBIN, LinkerOptions.of("sm_90"), List.of(input));
    assertThat(told(linkage::run).getMessage())
        .isEqualTo("a linker of the linker's library is left behind");
  }
}
