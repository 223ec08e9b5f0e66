package io.cuvette.testkit.program;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.KernelCode;
import io.cuvette.KernelCode.Kind;
import io.cuvette.driver.CompilerCalls;
import io.cuvette.driver.CompilerException;
import io.cuvette.internal.program.Compilation;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
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

  @Test
  void programThatCannotBeDestroyed_isToldToTheLog() {
    List<LogRecord> told = new ArrayList<>();
    long thread = Thread.currentThread().threadId();
    Logger log = Logger.getLogger("io.cuvette.compiler");
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
    log.setFilter(record -> record.getLongThreadID() != thread || !told.add(record));
    try {
      KernelCode code = compilation.run(Optional.empty());
      assertThat(code.text()).isEqualTo("code");
    } finally {
      log.setFilter(null);
    }
    assertThat(told).hasSize(1);
    assertThat(told.getFirst().getLevel()).isEqualTo(Level.WARNING);
    assertThat(told.getFirst().getThrown()).isInstanceOf(CompilerException.class);
  }
}
