package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceBuffer;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.PageHandles;
import io.cuvette.instrument.Misuse;
import io.cuvette.instrument.SanitizerDriver;
import io.cuvette.instrument.SanitizerReport;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/**
 * The sanitizer does not see what other processes write to pages, and knows which pages they have.
 */
class SanitizedPagesTest extends TwoProcesses {
  private final List<SanitizerReport> reports = new CopyOnWriteArrayList<>();

  private Cuda sanitized() {
    SimulatedDriver simulator = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    return Cuda.open(
        CudaOptions.DEFAULTS.withDriver(SanitizerDriver.reporting(simulator, reports::add)));
  }

  /** A read may be several copies. */
  private void assertReported(Misuse... misuses) {
    assertThat(reports.stream().map(SanitizerReport::misuse).distinct()).containsExactly(misuses);
    reports.clear();
  }

  @Test
  void pagesThatAreExported_mayBeWrittenByOthers_untilTheyAreUnmapped() {
    try (Cuda cuda = sanitized();
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda, ElasticSharingTest.EXPORTABLE)) {
      try (Buffer ours = pool.allocate(5 * MIB)) {
        byte[] _ = bytes(ours);
        assertReported(Misuse.UNINITIALIZED_READ);
        pool.export(ours.slice(0, 100)).close();
        byte[] _ = bytes(ours.slice(0, 2 * MIB));
        assertReported();
        byte[] _ = bytes(ours.slice(4 * MIB));
        assertReported(Misuse.UNINITIALIZED_READ); // of a page that nobody else has
        pool.export(ours).close();
        byte[] _ = bytes(ours);
        assertReported();
      }
      try (Buffer next = pool.allocate(5 * MIB)) {
        byte[] _ = bytes(next);
        assertReported(); // others may have the pages still
      }
      cuda.currentDevice().synchronize();
      assertThat(pool.freeAllBlocks()).isPositive();
      try (Buffer other = pool.allocate(5 * MIB)) {
        byte[] _ = bytes(other);
        assertReported(Misuse.UNINITIALIZED_READ); // new pages
      }
    }
  }

  @Test
  void pagesThatAreImported_areWrittenByOthers() {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(exporter, ElasticSharingTest.EXPORTABLE);
        Buffer ours = pool.allocate(5 * MIB);
        PageHandles handles = pool.export(ours);
        Cuda cuda = sanitized();
        DeviceBuffer theirs =
            cuda.currentDevice().importBuffer(handles, cuda.currentDevice().nullStream())) {
      ours.fill((byte) 4);
      here().synchronize();
      assertThat(bytes(theirs)).containsOnly(4);
      assertReported();
    }
  }
}
