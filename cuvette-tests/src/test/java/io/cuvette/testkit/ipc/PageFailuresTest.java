package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceBuffer;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.PageHandles;
import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemHandleType;
import io.cuvette.driver.MemLocationType;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import io.cuvette.testkit.ScriptedDriver;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What an importer of pages says of a call that fails, and when what that left behind ends. */
class PageFailuresTest extends TwoProcesses {
  private static final String EXPLAINED = "a descriptor is of no memory of a GPU";

  private final ScriptedDriver script = new ScriptedDriver();

  /** A third process, with a driver that follows the script. */
  private void scripted(BiConsumer<Cuda, PageHandles> use) {
    try (ElasticMemoryPool pool = new ElasticMemoryPool(exporter, ElasticSharingTest.EXPORTABLE);
        Buffer buffer = pool.allocate(5 * MIB);
        PageHandles handles = pool.export(buffer);
        Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
      use.accept(cuda, handles);
    }
  }

  private static DeviceBuffer imported(Cuda cuda, PageHandles handles) {
    return cuda.device(0).importBuffer(handles, cuda.device(0).nullStream());
  }

  @Test
  void descriptors_areSuspected_onlyIfTheDriverFindsTheCallInvalid() {
    scripted((cuda, handles) -> {
      for (CudaStatus status : List.of(CudaStatus.INVALID_VALUE, CudaStatus.INVALID_HANDLE)) {
        script.fail("memImportFromShareableHandle", status, 1);
        assertThatThrownBy(() -> imported(cuda, handles)).hasMessageContaining(EXPLAINED);
      }
      for (CudaStatus status : List.of(CudaStatus.OUT_OF_MEMORY, CudaStatus.NOT_PERMITTED)) {
        script.fail("memImportFromShareableHandle", status, 1);
        assertThatThrownBy(() -> imported(cuda, handles))
            .isInstanceOf(CudaException.class)
            .hasMessageContaining(status.name())
            .hasMessageNotContaining(EXPLAINED);
      }
      imported(cuda, handles).close();
    });
  }

  @Test
  void addressesThatAreRefused_areTheOnlyFailure() {
    scripted((cuda, handles) -> {
      script.fail("memAddressReserve", CudaStatus.NOT_PERMITTED, 1);
      assertThatThrownBy(() -> imported(cuda, handles))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("memAddressReserve")
          .hasNoSuppressedExceptions();
      imported(cuda, handles).close();
    });
  }

  /** Of the host, or of a device that this one cannot reach, by the number of one that it can. */
  @Test
  void pagesOfAnotherPlace_areRefused_andNothingOfThemIsLeft() {
    scripted((cuda, handles) -> {
      script.answer("deviceCanAccessPeer", _ -> false);
      List<AllocationProperties> places = new ArrayList<>();
      for (int type :
          new int[] {MemLocationType.NONE, MemLocationType.HOST, MemLocationType.HOST_NUMA}) {
        places.add(new AllocationProperties(MemHandleType.FILE_DESCRIPTOR, type, 0));
      }
      places.add(AllocationProperties.ofDevice(1, MemHandleType.FILE_DESCRIPTOR));
      for (AllocationProperties place : places) {
        script.answer("memGetAllocationPropertiesFromHandle", _ -> place);
        assertThatThrownBy(() -> imported(cuda, handles))
            .as("%s", place)
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageStartingWith(
                "pages: memory of location %d:%d ", place.locationType(), place.locationId());
        assertThat(script.count("memAddressFree")).isEqualTo(script.count("memAddressReserve"));
        assertThat(script.count("memRelease"))
            .isEqualTo(script.count("memImportFromShareableHandle"));
      }
      script.unscript("memGetAllocationPropertiesFromHandle");
      imported(cuda, handles).close();
    });
  }

  /** Its addresses are nobody else's until then. */
  @Test
  void pagesThatCannotBeUnmapped_areWithALaterStep() {
    scripted((cuda, handles) -> {
      script.fail("memSetAccess", CudaStatus.NOT_PERMITTED, 1);
      script.fail("memUnmap", CudaStatus.NOT_PERMITTED, 2);
      assertThatThrownBy(() -> imported(cuda, handles)).isInstanceOf(CudaException.class);
      assertThat(script.count("memAddressFree")).isZero();
      imported(cuda, handles).close();
      imported(cuda, handles).close();
      assertThat(script.count("memAddressReserve")).isEqualTo(3);
      assertThat(script.count("memAddressFree")).isEqualTo(3);
    });
  }

  @Test
  void addressesOfPagesThatCannotBeUnmapped_areGivenBackWithTheCuda() {
    script.note("memAddressFree");
    assertThatThrownBy(() ->
            scripted((cuda, handles) -> {
              script.fail("memSetAccess", CudaStatus.NOT_PERMITTED, 1);
              script.fail("memUnmap", CudaStatus.NOT_PERMITTED);
              assertThatThrownBy(() -> imported(cuda, handles)).isInstanceOf(CudaException.class);
              assertThat(script.notes()).isEmpty();
            }))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("memUnmap");
    assertThat(script.notes()).isNotEmpty();
  }

  /** They may be another's by now. */
  @Test
  void addressesThatMayBeFree_areNotFreedAgain() {
    script.note("memAddressFree");
    scripted((cuda, handles) -> {
      DeviceBuffer buffer = imported(cuda, handles);
      script.answer(
          "memAddressFree",
          call -> {
            Object _ = call.proceed();
            throw new CudaException(CudaStatus.ILLEGAL_ADDRESS, call.name(), "on purpose");
          });
      assertThatThrownBy(buffer::close).isInstanceOf(CudaException.class);
      script.unscript("memAddressFree");
      assertThat(cuda.leaksFound()).isZero(); // what failed is tried again
    });
    assertThat(script.notes()).hasSize(1);
  }

  /** Nobody is left who could try again. */
  @Test
  void pagesOfACudaThatIsClosed_areGivenBackByTheNext_whateverFails() {
    SimulatedDriver below = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    CudaDriver driver = script.over(ScriptedDriver.keptOpen(below));
    script.answer("isSimulated", _ -> false); // else each Cuda is a process of its own
    script.note("memAddressFree");
    try (ElasticMemoryPool pool = new ElasticMemoryPool(exporter, ElasticSharingTest.EXPORTABLE);
        Buffer buffer = pool.allocate(5 * MIB);
        PageHandles handles = pool.export(buffer);
        Cuda other = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver))) {
      Cuda first = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver));
      script.unscript("isSimulated");
      DeviceBuffer _ = imported(first, handles);
      DeviceBuffer theirs = imported(other, handles);
      assertThat(script.count("memAddressReserve")).isOne();
      first.close();
      theirs.fill((byte) 1);
      script.answer(
          "memUnmap",
          call -> {
            Object _ = call.proceed();
            script.unscript("memUnmap");
            throw new CudaException(CudaStatus.ILLEGAL_ADDRESS, call.name(), "on purpose");
          });
      assertThatThrownBy(theirs::close).isInstanceOf(CudaException.class);
      assertThat(script.notes()).hasSize(1);
    }
    below.close();
  }

  /** Its own driver answers no more. */
  @Test
  void pagesOfACudaThatIsClosed_areGivenBackByTheDriverOfTheLast() {
    SimulatedDriver below = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
    ScriptedDriver last = new ScriptedDriver();
    CudaDriver kept = ScriptedDriver.keptOpen(below);
    for (ScriptedDriver each : List.of(script, last)) {
      each.answer("isSimulated", _ -> false); // else each Cuda is a process of its own
    }
    try (ElasticMemoryPool pool = new ElasticMemoryPool(exporter, ElasticSharingTest.EXPORTABLE);
        Buffer buffer = pool.allocate(5 * MIB);
        PageHandles handles = pool.export(buffer);
        Cuda other = Cuda.open(CudaOptions.DEFAULTS.withDriver(last.over(kept)))) {
      Cuda first = Cuda.open(CudaOptions.DEFAULTS.withDriver(script.over(kept)));
      script.unscript("isSimulated");
      last.unscript("isSimulated");
      DeviceBuffer _ = imported(first, handles);
      DeviceBuffer theirs = imported(other, handles);
      assertThat(script.count("memAddressReserve")).isOne();
      assertThat(last.count("memAddressReserve")).isZero();
      first.close();
      theirs.close();
      for (String call : List.of("memUnmap", "memAddressFree")) {
        assertThat(script.count(call)).as(call).isZero();
        assertThat(last.count(call)).as(call).isOne();
      }
    }
    below.close();
  }

  /** Whether or not the failure tells that nothing was done. */
  @ParameterizedTest
  @EnumSource(names = {"NOT_PERMITTED", "ILLEGAL_ADDRESS", "UNKNOWN"})
  void addressesOfPagesWhoseEndFails_areFreedOnceTheyAreUnmapped(CudaStatus status) {
    script.note("memAddressFree");
    scripted((cuda, handles) -> {
      DeviceBuffer buffer = imported(cuda, handles);
      script.fail("memUnmap", status, 3);
      assertThatThrownBy(buffer::close).isInstanceOf(CudaException.class);
      assertThat(script.notes()).isEmpty();
      for (int i = 0; i < 5; i++) {
        assertThat(cuda.leaksFound()).as("what failed is tried again").isZero();
      }
      assertThat(script.notes()).hasSize(1);
      imported(cuda, handles).close();
      assertThat(script.notes()).hasSize(2);
    });
    assertThat(script.notes()).hasSize(2);
  }

  /** It keeps memory that nobody has any more. */
  @Test
  void handleThatAnExportCouldNotRelease_isReleasedByTheNextExport() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda, ElasticSharingTest.EXPORTABLE);
        Buffer buffer = pool.allocate(5 * MIB)) {
      script.fail("memRelease", CudaStatus.NOT_PERMITTED, 1);
      assertThatThrownBy(() -> pool.export(buffer)).isInstanceOf(CudaException.class);
      long before = script.count("memRelease");
      long retained = script.count("memRetainAllocationHandle");
      pool.export(buffer).close();
      assertThat(script.count("memRelease") - before)
          .isEqualTo(script.count("memRetainAllocationHandle") - retained + 1);
    }
  }

  @Test
  void filesOfAnExportThatFailsAtLast_areClosed() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda, ElasticSharingTest.EXPORTABLE);
        Buffer buffer = pool.allocate(5 * MIB)) {
      pool.export(buffer).close();
      long before = OpenFiles.count(); // of memory that could be exported again
      try (PageHandles _ = pool.export(buffer)) {
        assertThat(OpenFiles.count()).isGreaterThan(before);
      }
      assertThat(OpenFiles.count()).isEqualTo(before);
      script.fail("deviceGetUuid", CudaStatus.UNKNOWN, 1);
      assertThatThrownBy(() -> pool.export(buffer)).hasMessageContaining("deviceGetUuid");
      assertThat(OpenFiles.count()).isEqualTo(before);
    }
  }

  /** Only who did not free them tries again, and nobody else at the same time. */
  @Test
  void pagesThatSurelyStayMapped_areTriedOnceWithEachStep() {
    scripted((cuda, handles) -> {
      DeviceBuffer buffer = imported(cuda, handles);
      AtomicInteger tries = new AtomicInteger();
      script.answer(
          "memUnmap",
          call -> {
            tries.incrementAndGet();
            throw new CudaException(CudaStatus.NOT_PERMITTED, call.name(), "on purpose");
          });
      assertThatThrownBy(buffer::close).isInstanceOf(CudaException.class);
      assertThat(tries).hasValue(1);
      for (int i = 2; i < 5; i++) {
        assertThat(cuda.leaksFound()).isZero();
        assertThat(tries).hasValue(i);
      }
      script.unscript("memUnmap");
      assertThat(cuda.leaksFound()).isZero();
      assertThat(script.count("memUnmap")).isOne();
      assertThat(script.count("memAddressFree")).isOne();
    });
  }

  @Test
  void addressesOfPagesThatMayStayMapped_areFreedWithTheCuda() {
    script.note("memAddressFree");
    assertThatThrownBy(() ->
            scripted((cuda, handles) -> {
              DeviceBuffer buffer = imported(cuda, handles);
              script.fail("memUnmap", CudaStatus.ILLEGAL_ADDRESS);
              assertThatThrownBy(buffer::close).isInstanceOf(CudaException.class);
              assertThat(cuda.leaksFound()).isZero();
              assertThat(script.notes()).isEmpty();
            }))
        .isInstanceOf(CudaException.class)
        .hasMessageContaining("memUnmap");
    assertThat(script.notes()).hasSize(1);
  }
}
