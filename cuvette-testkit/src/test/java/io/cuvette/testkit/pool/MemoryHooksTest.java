package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.DebugPrintHook;
import io.cuvette.LineProfileHook;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryPool;
import io.cuvette.Registration;
import io.cuvette.Scope;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class MemoryHooksTest {
  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final MemoryPool pool = new MemoryPool(cuda);

  @AfterEach
  void close() {
    cuda.close();
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
    try (Scope _ = pool.useHook(hook)) {
      pool.allocate(1000).close(); // reused: used, not acquired
      pool.allocate(2000).close();
    }
    StringBuilder report = new StringBuilder();
    hook.printReport(report);
    assertThat(report.toString()).startsWith("_root (3.00KB, 2.00KB)\n");
    assertThat(report.toString())
        .containsPattern(Pattern.compile("MemoryHooksTest.java:\\d+:\\w+ \\(1.00KB, 0.00B\\)"))
        .containsPattern(Pattern.compile("MemoryHooksTest.java:\\d+:\\w+ \\(2.00KB, 2.00KB\\)"));
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
  void hooks_areCalledInTheOrderTheyWereAddedBeforeAndAfter() {
    List<String> calls = new ArrayList<>();
    try (Registration _ = pool.addHook(noting("a", calls));
        Registration _ = pool.addHook(noting("b", calls))) {
      pool.allocate(1).close();
    }
    assertThat(calls)
        .containsExactly(
            "a malloc pre",
            "b malloc pre",
            "a alloc pre",
            "b alloc pre",
            "a alloc post",
            "b alloc post",
            "a malloc post",
            "b malloc post",
            "a free pre",
            "b free pre",
            "a free post",
            "b free post");
  }

  @Test
  void scopedHook_seesOnlyItsThread_andAnAddedHookSeesAll() throws InterruptedException {
    List<String> scoped = new ArrayList<>();
    List<String> all = new ArrayList<>();
    try (Registration _ = pool.addHook(noting("all", all));
        Scope _ = pool.useHook(noting("scoped", scoped))) {
      Thread other = Thread.ofVirtual().start(() -> pool.allocate(1).close());
      other.join();
    }
    assertThat(scoped).isEmpty();
    assertThat(all).hasSize(6);
  }

  @Test
  void exceptionOfAPreHook_stopsTheAllocation_andNothingIsCounted() {
    MemoryHook refusing =
        new MemoryHook() {
          @Override
          public void mallocPreprocess(Block block) {
            throw new IllegalStateException("no");
          }
        };
    try (Registration _ = pool.addHook(refusing)) {
      assertThatThrownBy(() -> pool.allocate(1)).hasMessage("no");
    }
    assertThat(pool.stats().allocations()).isZero();
    pool.allocate(1).close();
  }

  @Test
  void sameHookTwice_isRefused() {
    MemoryHook hook = new MemoryHook() {};
    try (Registration _ = pool.addHook(hook)) {
      assertThatThrownBy(() -> pool.addHook(hook)).isInstanceOf(IllegalStateException.class);
    }
    pool.addHook(hook).close();
  }

  private static MemoryHook noting(String name, List<String> calls) {
    return new MemoryHook() {
      @Override
      public void allocPreprocess(Growth growth) {
        calls.add(name + " alloc pre");
      }

      @Override
      public void allocPostprocess(Growth growth) {
        calls.add(name + " alloc post");
      }

      @Override
      public void mallocPreprocess(Block block) {
        calls.add(name + " malloc pre");
      }

      @Override
      public void mallocPostprocess(Block block) {
        calls.add(name + " malloc post");
      }

      @Override
      public void freePreprocess(Block block) {
        calls.add(name + " free pre");
      }

      @Override
      public void freePostprocess(Block block) {
        calls.add(name + " free post");
      }
    };
  }
}
