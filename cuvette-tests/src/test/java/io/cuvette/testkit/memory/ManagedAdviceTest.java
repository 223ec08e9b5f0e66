package io.cuvette.testkit.memory;

import static io.cuvette.testkit.support.Sizes.PAGE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.DeviceAttribute;
import io.cuvette.ManagedBuffer;
import io.cuvette.ManagedMemoryResource;
import io.cuvette.ManagedMemoryResourceOptions;
import io.cuvette.MemoryAdvice;
import io.cuvette.MemoryLocation;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.MemLocationType;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Capture;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Consumer;

/** Advice and where memory was moved, read back on exactly the buffer's range. */
class ManagedAdviceTest {

  private static MemoryLocation device(Cuda cuda) {
    return MemoryLocation.device(cuda.device(0));
  }

  private static MemoryLocation nearestNode(Cuda cuda) {
    int node = cuda.device(0).attribute(DeviceAttribute.HOST_NUMA_ID);
    assumeTrue(node >= 0, "no NUMA node is known");
    return MemoryLocation.hostNuma(node);
  }

  @CudaTest
  void readMostly_isReadBack_onItsSliceOnly(Cuda cuda) {
    try (ManagedBuffer whole = cuda.allocateManaged(3 * PAGE)) {
      assertThat(whole.isReadMostly()).isFalse();
      ManagedBuffer middle = whole.slice(PAGE, PAGE);
      middle.setReadMostly(true);
      assertThat(middle.isReadMostly()).isTrue();
      assertThat(whole.slice(0, PAGE).isReadMostly()).isFalse();
      assertThat(whole.slice(2 * PAGE).isReadMostly()).isFalse();
      assertThat(whole.isReadMostly()).as("not all of it").isFalse();
      whole.setReadMostly(true);
      assertThat(whole.isReadMostly()).isTrue();
      middle.setReadMostly(false);
      assertThat(middle.isReadMostly()).isFalse();
      assertThat(whole.slice(0, PAGE).isReadMostly()).isTrue();
    }
  }

  @CudaTest
  void preferredLocation_isReadBack_andTakenBack(Cuda cuda) {
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      assertThat(buffer.preferredLocation()).isEmpty();
      for (MemoryLocation location : List.of(device(cuda), MemoryLocation.host())) {
        buffer.setPreferredLocation(location);
        assertThat(buffer.preferredLocation()).contains(location);
      }
      buffer.clearPreferredLocation();
      assertThat(buffer.preferredLocation()).isEmpty();
      buffer.clearPreferredLocation();
    }
  }

  /** A driver (seen with 580.159 where the host is one node) may take a node and not record it. */
  @CudaTest
  void preferredNode_isReadBackAsTheNode_whereTheDriverRecordsIt(Cuda cuda) {
    MemoryLocation node = nearestNode(cuda);
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      buffer.setPreferredLocation(node);
      if (cuda.isSimulated()) {
        assertThat(buffer.preferredLocation()).contains(node);
      } else {
        assertThat(buffer.preferredLocation().orElse(node)).isEqualTo(node);
      }
      buffer.setPreferredLocation(MemoryLocation.hostNumaCurrent());
      assertThat(buffer.preferredLocation()).isNotEqualTo(Optional.of(device(cuda)));
    }
  }

  @CudaTest
  void preferredLocation_isForExactlyTheBuffersRange(Cuda cuda) {
    try (ManagedBuffer whole = cuda.allocateManaged(3 * PAGE)) {
      whole.slice(PAGE, PAGE).setPreferredLocation(device(cuda));
      assertThat(whole.slice(0, PAGE).preferredLocation()).isEmpty();
      assertThat(whole.slice(PAGE, PAGE).preferredLocation()).contains(device(cuda));
      assertThat(whole.slice(2 * PAGE).preferredLocation()).isEmpty();
      assertThat(whole.preferredLocation()).as("parts differ").isEmpty();
      whole.slice(0, PAGE).setPreferredLocation(MemoryLocation.host());
      assertThat(whole.slice(0, 2 * PAGE).preferredLocation()).as("parts differ").isEmpty();
    }
  }

  @CudaTest
  void lastPrefetchLocation_isWhereTheWholeRangeWent(Cuda cuda) {
    try (ManagedBuffer whole = cuda.allocateManaged(2 * PAGE)) {
      Bytes.put(whole, Bytes.random(5, (int) (2 * PAGE)));
      assertThat(whole.lastPrefetchLocation()).isEmpty();
      whole.slice(0, PAGE).prefetch(device(cuda));
      cuda.device(0).synchronize();
      assertThat(whole.slice(0, PAGE).lastPrefetchLocation()).contains(device(cuda));
      assertThat(whole.slice(PAGE).lastPrefetchLocation()).isEmpty();
      assertThat(whole.lastPrefetchLocation()).isEmpty();
      whole.prefetch(MemoryLocation.host());
      cuda.device(0).synchronize();
      assertThat(whole.lastPrefetchLocation()).contains(MemoryLocation.host());
      assertThat(Bytes.of(whole)).isEqualTo(Bytes.random(5, (int) (2 * PAGE)));
    }
  }

  @CudaTest
  void prefetchToANode_isReadBackAsTheNode(Cuda cuda, CudaStream stream) {
    MemoryLocation node = nearestNode(cuda);
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      buffer.fill((byte) 4, stream);
      buffer.prefetch(node, stream);
      stream.synchronize();
      assertThat(buffer.lastPrefetchLocation()).contains(node);
      assertThat(Bytes.of(buffer)).containsOnly(4);
      buffer.prefetch(MemoryLocation.hostNumaCurrent(), stream);
      stream.synchronize();
      assertThat(buffer.lastPrefetchLocation()).isPresent();
    }
  }

  @CudaTest(devices = 2)
  void everyDevice_isPreferredAndPrefetchedTo(Cuda cuda) {
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      buffer.fill((byte) 1);
      for (CudaDevice device : cuda.devices()) {
        MemoryLocation there = MemoryLocation.device(device);
        buffer.setPreferredLocation(there);
        assertThat(buffer.preferredLocation()).contains(there);
        try (CudaStream stream = device.createStream()) {
          buffer.prefetch(there, stream);
          stream.synchronize();
        }
        assertThat(buffer.lastPrefetchLocation()).contains(there);
      }
      assertThat(Bytes.of(buffer)).containsOnly(1);
    }
  }

  @CudaTest
  void noBytes_haveNoAdvice(Cuda cuda) {
    try (ManagedBuffer buffer = cuda.allocateManaged(0);
        ManagedBuffer some = cuda.allocateManaged(PAGE)) {
      some.setReadMostly(true);
      for (ManagedBuffer nothing : List.of(buffer, some.slice(100, 0))) {
        nothing.setReadMostly(true);
        nothing.setPreferredLocation(device(cuda));
        nothing.clearPreferredLocation();
        nothing.prefetch(device(cuda));
        assertThat(nothing.isReadMostly()).isFalse();
        assertThat(nothing.preferredLocation()).isEmpty();
        assertThat(nothing.lastPrefetchLocation()).isEmpty();
        assertThatThrownBy(() -> nothing.setPreferredLocation(new MemoryLocation.Device(999)))
            .isInstanceOf(IllegalArgumentException.class);
      }
    }
  }

  @CudaTest
  void closedBuffer_answersNothing(Cuda cuda) {
    ManagedBuffer buffer = cuda.allocateManaged(PAGE);
    ManagedBuffer slice = buffer.slice(0, 100);
    ManagedBuffer nothing = buffer.slice(0, 0);
    var places = buffer.accessedBy();
    buffer.close();
    for (Consumer<ManagedBuffer> call :
        List.<Consumer<ManagedBuffer>>of(
            ManagedBuffer::isReadMostly,
            ManagedBuffer::preferredLocation,
            ManagedBuffer::lastPrefetchLocation,
            ManagedBuffer::clearPreferredLocation,
            one -> one.setReadMostly(true),
            one -> one.setAccessedBy(List.of()),
            one -> one.accessedBy().size(),
            one -> one.accessedBy().clear(),
            one -> one.prefetch(MemoryLocation.host()))) {
      for (ManagedBuffer dead : List.of(buffer, slice, nothing)) {
        assertThatThrownBy(() -> call.accept(dead)).isInstanceOf(IllegalStateException.class);
      }
    }
    assertThatThrownBy(places::size).isInstanceOf(IllegalStateException.class);
  }

  @CudaTest
  void devicesThatAreNot_areRefusedBeforeTheDriver(Cuda cuda) {
    MemoryLocation nowhere = new MemoryLocation.Device(100_000_000);
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      for (Consumer<ManagedBuffer> call :
          List.<Consumer<ManagedBuffer>>of(
              one -> one.prefetch(nowhere),
              one -> one.setPreferredLocation(nowhere),
              one -> one.accessedBy().add(nowhere),
              one -> one.advise(MemoryAdvice.SET_PREFERRED_LOCATION, nowhere),
              one -> one.advise(MemoryAdvice.UNSET_ACCESSED_BY, nowhere))) {
        assertThatThrownBy(() -> call.accept(buffer))
            .isInstanceOf(IllegalArgumentException.class)
            .hasMessageContaining("device 100000000")
            .hasMessageContaining("0 to " + (cuda.deviceCount() - 1));
      }
      buffer.advise(MemoryAdvice.SET_READ_MOSTLY, nowhere); // which says nothing about a place
      assertThat(buffer.isReadMostly()).isTrue();
      assertThatThrownBy(() -> buffer.setPreferredLocation(MemoryLocation.hostNuma(99_999)))
          .isInstanceOf(CudaException.class);
    }
  }

  @CudaTest(simulatedOnly = true)
  void adviceThatIsAboutNoPlace_takesAny_andTheOtherIsToldItsOwn(Cuda cuda, ScriptedDriver driver) {
    driver.note(
        "memAdvise",
        call ->
            "%d %d %d"
                .formatted(
                    call.number("advice"), call.number("locationType"), call.number("locationId")));
    MemoryLocation nowhere = new MemoryLocation.Device(100_000_000);
    MemoryLocation device = device(cuda);
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      buffer.advise(MemoryAdvice.SET_READ_MOSTLY, nowhere);
      buffer.advise(MemoryAdvice.UNSET_READ_MOSTLY, nowhere);
      buffer.advise(MemoryAdvice.SET_PREFERRED_LOCATION, device);
      buffer.advise(MemoryAdvice.UNSET_PREFERRED_LOCATION, nowhere);
      buffer.advise(MemoryAdvice.SET_ACCESSED_BY, device);
      buffer.advise(MemoryAdvice.UNSET_ACCESSED_BY, device);
      assertThat(driver.takeNotes())
          .containsExactly("1 2 0", "2 2 0", "3 1 0", "4 2 0", "5 1 0", "6 1 0");
      for (MemoryAdvice about :
          List.of(MemoryAdvice.SET_ACCESSED_BY, MemoryAdvice.UNSET_ACCESSED_BY)) {
        for (MemoryLocation node :
            List.of(MemoryLocation.hostNuma(0), MemoryLocation.hostNumaCurrent())) {
          assertThatThrownBy(() -> buffer.advise(about, node))
              .isInstanceOf(IllegalArgumentException.class)
              .hasMessageContaining("expected: a device or the host, for " + about);
        }
      }
      assertThat(driver.notes()).isEmpty();
    }
  }

  @CudaTest
  void capturingStream_isRefused(Cuda cuda, CudaStream stream) {
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      Capture.of(
          stream,
          () ->
              assertThatThrownBy(() -> buffer.prefetch(MemoryLocation.host(), stream))
                  .isInstanceOf(IllegalStateException.class)
                  .hasMessageContaining("captur"));
    }
  }

  /** Some drivers take no advice for memory of a pool: then each says so. */
  @CudaTest
  void memoryOfAPool_takesAdvice_orTheErrorSaysWhatDoes(Cuda cuda) {
    try (ManagedMemoryResource resource =
            new ManagedMemoryResource(cuda, ManagedMemoryResourceOptions.DEFAULTS);
        ManagedBuffer buffer = resource.allocate(2 * PAGE)) {
      cuda.currentStream().synchronize();
      buffer.fill((byte) 8);
      takenOrExplained(() -> {
        buffer.setReadMostly(true);
        assertThat(buffer.isReadMostly()).isTrue();
        buffer.setReadMostly(false);
      });
      takenOrExplained(() -> {
        buffer.setPreferredLocation(MemoryLocation.host());
        assertThat(buffer.preferredLocation()).contains(MemoryLocation.host());
      });
      buffer.prefetch(device(cuda));
      buffer.prefetch(MemoryLocation.host());
      cuda.currentStream().synchronize();
      assertThat(Bytes.of(buffer)).containsOnly(8);
      takenOrExplained(
          () -> assertThat(buffer.lastPrefetchLocation()).contains(MemoryLocation.host()));
    }
    cuda.currentStream().synchronize();
  }

  private static void takenOrExplained(Runnable advice) {
    try {
      advice.run();
    } catch (CudaException e) {
      assertThat(e.status()).isEqualTo(CudaStatus.NOT_SUPPORTED);
      assertThat(e).hasMessageContaining("pool").hasMessageContaining("allocateManaged");
    }
  }

  @CudaTest
  void driverThatRefuses_isExplained_forPoolsAndWithout(Cuda cuda, ScriptedDriver driver) {
    driver.fail("memAdvise", CudaStatus.NOT_SUPPORTED);
    try (ManagedMemoryResource resource =
            new ManagedMemoryResource(cuda, ManagedMemoryResourceOptions.DEFAULTS);
        ManagedBuffer pooled = resource.allocate(PAGE);
        ManagedBuffer plain = cuda.allocateManaged(PAGE)) {
      assertThatThrownBy(() -> pooled.setReadMostly(true))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_SUPPORTED))
          .hasMessageContaining("pool")
          .hasMessageContaining("allocateManaged");
      assertThatThrownBy(() -> plain.setReadMostly(true))
          .isInstanceOfSatisfying(
              CudaException.class, e -> assertThat(e.status()).isEqualTo(CudaStatus.NOT_SUPPORTED))
          .hasMessageNotContaining("pool");
    }
    cuda.currentStream().synchronize();
  }

  @CudaTest
  void driverBefore13_isAskedWithoutTypes(Subject subject, ScriptedDriver driver) {
    driver.answer("driverGetVersion", _ -> 12000);
    driver.answer(
        "memRangeGetAttribute",
        call -> {
          assertThat(call.number("attribute")).isBetween(1L, 4L);
          return call.proceed();
        });
    Cuda cuda = subject.cuda();
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      assertThat(buffer.preferredLocation()).isEmpty();
      for (MemoryLocation location : List.of(device(cuda), MemoryLocation.host())) {
        buffer.setPreferredLocation(location);
        assertThat(buffer.preferredLocation()).contains(location);
      }
      buffer.prefetch(device(cuda));
      cuda.currentStream().synchronize();
      assertThat(buffer.lastPrefetchLocation()).contains(device(cuda));
    }
  }

  /** Also a place that nobody gives it through this library. */
  @CudaTest(simulatedOnly = true)
  void placeOfAMapping_isWhatTheDriverSays(Cuda cuda, ScriptedDriver driver) {
    Map<Integer, Optional<MemoryLocation>> places =
        Map.of(
            MemLocationType.DEVICE,
            Optional.of(new MemoryLocation.Device(0)),
            MemLocationType.HOST,
            Optional.of(MemoryLocation.host()),
            MemLocationType.HOST_NUMA,
            Optional.of(MemoryLocation.hostNuma(0)),
            MemLocationType.HOST_NUMA_CURRENT,
            Optional.of(MemoryLocation.hostNumaCurrent()),
            MemLocationType.NONE,
            Optional.empty(),
            99,
            Optional.empty());
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      places.forEach((type, place) -> {
        driver.answer("memRangeGetAttribute", call -> call.number("attribute") % 2 == 1 ? type : 0);
        assertThat(buffer.preferredLocation()).as("%d", type).isEqualTo(place);
        assertThat(buffer.lastPrefetchLocation()).as("%d", type).isEqualTo(place);
      });
      driver.unscript("memRangeGetAttribute");
    }
  }

  /** What else a driver answers has nothing to do with how the memory was allocated. */
  @CudaTest(simulatedOnly = true)
  void otherErrors_areNotExplained(Cuda cuda, ScriptedDriver driver) {
    try (ManagedBuffer buffer = cuda.allocateManaged(PAGE)) {
      for (CudaStatus status :
          List.of(CudaStatus.NOT_SUPPORTED, CudaStatus.INVALID_VALUE, CudaStatus.UNKNOWN)) {
        driver.fail("memAdvise", status);
        driver.fail("memRangeGetAttribute", status);
        for (Consumer<ManagedBuffer> call :
            List.<Consumer<ManagedBuffer>>of(
                one -> one.setReadMostly(true), ManagedBuffer::isReadMostly)) {
          assertThatThrownBy(() -> call.accept(buffer))
              .isInstanceOfSatisfying(
                  CudaException.class,
                  e -> {
                    assertThat(e.status()).isEqualTo(status);
                    assertThat(e.getMessage().contains("not for this memory with this driver"))
                        .as("%s", status)
                        .isEqualTo(status == CudaStatus.NOT_SUPPORTED);
                  });
        }
      }
      driver.unscript("memAdvise");
      driver.unscript("memRangeGetAttribute");
    }
  }
}
