package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.driver.PoolProperties;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.sim.internal.share.ProcessId;
import io.cuvette.testkit.support.PeerCommand;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** A process that has no descriptor left is told so, and blames nobody else for it. */
@EnabledOnOs(OS.LINUX)
@Timeout(60)
class NoDescriptorsTest {
  private static final String FEW = "ulimit -n 300 && exec \"$0\" \"$@\"";

  @Test
  void importsWithoutADescriptorLeft_areTheSystemsFailure() throws Exception {
    List<String> command = new ArrayList<>(List.of("sh", "-c", FEW));
    List<String> java = PeerCommand.of(Main.class);
    command.addAll(java);
    command.add(command.indexOf(java.getFirst()) + 1, "-XX:-MaxFDLimit");
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String printed = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(printed).isZero();
  }

  /** The process with few descriptors. Stateless. */
  static final class Main {
    private static final DescriptorCalls CALLS = DescriptorCalls.find().orElseThrow();

    private Main() {}

    public static void main(String[] args) {
      try (SimulatedDriver exporter = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
          SimulatedDriver importer = SimulatedDriver.open(SimulatedOptions.DEFAULTS)) {
        byte[] memory = exporter.sharing().ipcGetMemHandle(0, exporter.memory().memAlloc(0, 64));
        byte[] event = exporter.sharing().ipcGetEventHandle(0, exporter.events().eventCreate(0, 6));
        ThrowingCallable openMemory = () -> importer.sharing().ipcOpenMemHandle(0, memory);
        ThrowingCallable openEvent = () -> importer.sharing().ipcOpenEventHandle(0, event);
        long pool = exporter.pools().memPoolCreate(new PoolProperties(1, 1, 1, 0, 0));
        fill(exporter, pool);
        loadClasses(importer, memory);
        Deque<Integer> eaten = eatAll();
        assertFails(openMemory);
        assertFails(openEvent);
        if (!ProcessId.current().isAlive()) {
          throw new AssertionError("a process that cannot be looked at counts as running");
        }
        eaten.forEach(CALLS::close);
        importer.sharing().ipcOpenMemHandle(0, memory);
        importer.sharing().ipcOpenEventHandle(0, event);
        assertLosesTheDevice(exporter, pool);
      }
    }

    private static void fill(SimulatedDriver driver, long pool) {
      long address = driver.ordered().memAllocFromPoolAsync(0, 64, pool, 0);
      driver.transfers().memsetD8Async(0, address, (byte) 1, 64, 0);
      driver.streams().streamSynchronize(0, 0);
    }

    /** Memory of a pool is mapped when it is touched, which is too late for a refusal. */
    private static void assertLosesTheDevice(SimulatedDriver driver, long pool) {
      Deque<Integer> eaten = eatAll();
      try {
        assertThatExceptionOfType(CudaException.class)
            .isThrownBy(() -> fill(driver, pool))
            .withMessageContaining("mapping 4096 bytes of shared memory: ")
            .withMessageContaining("/proc/self/fd/")
            .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.OPERATING_SYSTEM));
      } finally {
        eaten.forEach(CALLS::close);
      }
    }

    /** A class may lie in a file, which cannot be opened later. */
    private static void loadClasses(SimulatedDriver importer, byte[] handle) {
      assertThatExceptionOfType(CudaException.class)
          .isThrownBy(() -> importer.sharing().memPoolImportFromShareableHandle(Integer.MAX_VALUE));
      assertThatExceptionOfType(CudaException.class)
          .isThrownBy(() -> importer.sharing().ipcOpenEventHandle(0, handle))
          .satisfies(e -> assertThat(e.status()).isNotEqualTo(CudaStatus.OPERATING_SYSTEM));
      importer.sharing().ipcCloseMemHandle(0, importer.sharing().ipcOpenMemHandle(0, handle));
      assertThatExceptionOfType(UncheckedIOException.class)
          .isThrownBy(() -> CALLS.duplicate(Integer.MAX_VALUE));
    }

    private static Deque<Integer> eatAll() {
      Deque<Integer> eaten = new ArrayDeque<>();
      try {
        while (true) {
          eaten.add(CALLS.memoryFile("eaten", 0));
        }
      } catch (UncheckedIOException e) {
        return eaten;
      }
    }

    private static void assertFails(ThrowingCallable call) {
      assertThatExceptionOfType(CudaException.class)
          .isThrownBy(call)
          .satisfies(e -> assertThat(e.status()).isEqualTo(CudaStatus.OPERATING_SYSTEM));
    }
  }
}
