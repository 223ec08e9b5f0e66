package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.DebugPrintHook;
import io.cuvette.LeakLevel;
import io.cuvette.LineProfileHook;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryPool;
import io.cuvette.Registration;
import io.cuvette.Scope;
import java.io.IOException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The hooks that come with the library; {@link HooksTest} has what every hook sees. */
class MemoryHooksTest {
  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final MemoryPool pool = new MemoryPool(cuda);

  @AfterEach
  void close() {
    cuda.close();
  }

  /** It is of use for blocks that come back later, and there is nothing left to close. */
  @Test
  void hookOfAClosedPool_isNotAmongTheOpenObjects() {
    try (Cuda watched = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.FULL))) {
      MemoryPool closed = new MemoryPool(watched);
      try (Registration _ = closed.addHook(new DebugPrintHook(new StringBuilder()))) {
        assertThat(watched.openObjects()).hasSize(2);
        closed.close();
        assertThat(watched.openObjects()).isEmpty();
      }
      Registration _ = closed.addHook(new DebugPrintHook(new StringBuilder()));
      assertThat(watched.openObjects()).isEmpty();
    }
  }

  @Test
  void debugPrintHook_writesOneLineAfterEachEvent() {
    StringBuilder out = new StringBuilder();
    long address;
    try (Registration _ = pool.addHook(new DebugPrintHook(out))) {
      Buffer block = pool.allocate(1);
      address = block.address();
      block.close();
    }
    String where = "\"device_id\":0,";
    assertThat(out.toString().lines().map(line -> line.replaceAll("0x[0-9a-f]+", "ID")))
        .containsExactly(
            "{\"hook\":\"alloc\"," + where + "\"mem_size\":512,\"mem_ptr\":" + address + "}",
            "{\"hook\":\"malloc\","
                + where
                + "\"size\":1,\"mem_size\":512,\"mem_ptr\":"
                + address
                + ",\"pmem_id\":\"ID\"}",
            "{\"hook\":\"free\","
                + where
                + "\"mem_size\":512,\"mem_ptr\":"
                + address
                + ",\"pmem_id\":\"ID\"}");
  }

  @Test
  void lineProfileHook_addsUpUsedAndAcquiredByCaller() {
    pool.allocate(1000).close();
    LineProfileHook hook = new LineProfileHook();
    try (Scope scope = pool.useHook(hook)) {
      assertThat(scope).hasToString("scope of hook " + hook);
      pool.allocate(1000).close(); // reused: used, not acquired
      pool.allocate(2000).close();
    }
    StringBuilder report = new StringBuilder();
    hook.printReport(report);
    assertThat(report.toString())
        .startsWith("_root (3.00KB, 2.00KB)\n")
        .doesNotContain("MemoryPool.java", "DevicePool.java", "LineProfileHook.java");
    assertThat(report.toString())
        .containsPattern(Pattern.compile("MemoryHooksTest.java:\\d+:\\w+ \\(1.00KB, 0.00B\\)"))
        .containsPattern(Pattern.compile("MemoryHooksTest.java:\\d+:\\w+ \\(2.00KB, 2.00KB\\)"));
  }

  @Test
  void lineProfileHook_writesAnySize_inTheLargestUnitThatItFills() {
    long[] sizes = {0, 1023, 1024, 1 << 20, 1L << 30, 1L << 40, 1L << 50, 1L << 60, Long.MAX_VALUE};
    String[] texts = {
      "0.00B", "1023.00B", "1.00KB", "1.00MB", "1.00GB", "1.00TB", "1.00PB", "1.00EB", "8.00EB"
    };
    for (int i = 0; i < sizes.length; i++) {
      LineProfileHook hook = new LineProfileHook(1);
      hook.mallocPreprocess(new MemoryHook.Block(cuda.device(0), 1, sizes[i], 0, 0));
      hook.allocPreprocess(new MemoryHook.Growth(cuda.device(0), sizes[i], 0));
      StringBuilder report = new StringBuilder();
      hook.printReport(report);
      assertThat(report.toString()).isEqualTo("_root (%s, %1$s)\n", texts[i]);
    }
  }

  @Test
  void lineProfileHook_reportsOnlyTheLevelsAskedFor() {
    LineProfileHook hook = new LineProfileHook(1);
    try (Scope _ = pool.useHook(hook)) {
      pool.allocate(1000).close();
    }
    StringBuilder report = new StringBuilder();
    hook.printReport(report);
    assertThat(report.toString()).isEqualTo("_root (1.00KB, 1.00KB)\n");
  }

  @Test
  void lineProfileHook_goesOnAfterAReport_alsoAfterOneThatCannotBeWritten() {
    LineProfileHook hook = new LineProfileHook(1);
    Appendable full =
        (Appendable)
            Proxy.newProxyInstance(
                Appendable.class.getClassLoader(),
                new Class<?>[] {Appendable.class},
                (_, _, _) -> {
                  throw new IOException("full");
                });
    try (Registration _ = pool.addHook(hook)) {
      for (Appendable out : List.of(new StringBuilder(), full)) {
        Throwable thrown = catchThrowable(() -> hook.printReport(out));
        assertThat(thrown == null).isEqualTo(out != full);
        CompletableFuture.runAsync(
                () -> pool.allocate(1000).close(), body -> Thread.ofPlatform().daemon().start(body))
            .orTimeout(60, TimeUnit.SECONDS)
            .join();
      }
    }
    StringBuilder report = new StringBuilder();
    hook.printReport(report);
    assertThat(report.toString()).isEqualTo("_root (2.00KB, 1.00KB)\n");
  }

  @Test
  void lineProfileHook_addsUpWhatAllThreadsDo() {
    LineProfileHook hook = new LineProfileHook(1);
    try (Registration _ = pool.addHook(hook)) {
      pool.allocate(1000).close();
      CompletableFuture.runAsync(
              () -> pool.allocate(1000).close(), body -> Thread.ofPlatform().daemon().start(body))
          .orTimeout(60, TimeUnit.SECONDS)
          .join();
    }
    StringBuilder report = new StringBuilder();
    hook.printReport(report);
    assertThat(report.toString()).isEqualTo("_root (2.00KB, 1.00KB)\n");
  }

  @Test
  void hookOfAThread_endsWithItsScope_andStaysForOtherThreads() {
    AtomicInteger seen = new AtomicInteger();
    MemoryHook counting =
        new MemoryHook() {
          @Override
          public void mallocPostprocess(Block block) {
            seen.incrementAndGet();
          }
        };
    try (Scope _ = pool.useHook(counting)) {
      CompletableFuture.runAsync(
              () -> {
                pool.useHook(counting).close();
                pool.allocate(512).close();
              },
              body -> Thread.ofPlatform().start(body))
          .join();
      assertThat(seen).hasValue(0);
      pool.allocate(512).close();
    }
    pool.allocate(512).close();
    assertThat(seen).hasValue(1);
  }

  /** The frames of the library are not the program's, whatever package they are in. */
  @Test
  void lineProfileHook_hasNoFrameOfTheLibrary_andSizesInTheirUnit() throws Exception {
    LineProfileHook hook = new LineProfileHook();
    try (Scope _ = pool.useHook(hook)) {
      pool.allocate(1024).close();
      pool.allocate(512).close();
    }
    StringBuilder report = new StringBuilder();
    hook.printReport(report);
    assertThat(report.toString()).startsWith("_root (1.50KB, 1.00KB)\n").contains("(1.00KB, ");
    for (String line : report.toString().lines().skip(1).toList()) {
      String file = line.strip().replaceFirst("\\.java:.*", "");
      for (String folder : List.of("", "internal/pool/", "internal/block/", "internal/base/")) {
        assertThat(LineProfileHook.class.getResource(folder + file + ".class")).as(line).isNull();
      }
    }
  }
}
