package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.lifetime.Children;
import io.cuvette.internal.share.Mapping;
import io.cuvette.internal.share.MappingSource;
import io.cuvette.internal.share.Mappings;
import io.cuvette.internal.stream.DriverStream;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** When imported memory goes back that graphs use, that waits, or whose free fails. */
class ImportedEndTest extends OverFakeSharing {
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final BufferDescriptor.Kind PLAIN = BufferDescriptor.Kind.PLAIN;

  private final CudaStream one = device.createStream(StreamOptions.NON_BLOCKING);
  private final CudaStream two = device.createStream(StreamOptions.NON_BLOCKING);

  /** The fake driver allocates in order of the null stream. */
  private DeviceBuffer imported(DeviceMemoryResource resource, int first, CudaStream stream) {
    DeviceBuffer buffer = resource.importBuffer(descriptor(first, 0, 64), stream);
    device.synchronize();
    return buffer;
  }

  private void settleUntilFreed(int frees) {
    boolean _ =
        Await.until(
            () -> {
              assertThat(cuda.leaksFound()).isZero();
              cuda.engine().imports().settle();
              return driver.frees.get() >= frees;
            },
            PATIENCE_NANOS);
    assertThat(driver.frees).hasValue(frees);
  }

  private int open() throws ReflectiveOperationException {
    Field open = Children.class.getDeclaredField("open");
    open.setAccessible(true);
    return ((Map<?, ?>) open.get(cuda.session().children())).size();
  }

  @Test
  void bufferThatWasClosed_isNotAmongWhatTheCudaHasToEnd() throws Exception {
    try (DeviceMemoryResource resource = mapped()) {
      imported(resource, 1, one).close();
      int before = open();
      for (int i = 0; i < 9; i++) {
        imported(resource, 1, one).close();
        device.importBuffer(descriptor(PLAIN, 9, 0, 64), one).close();
      }
      assertThat(open()).isLessThan(before + 5); // marks of work come and go
    }
  }

  /** A graph can run as long as it is there. */
  @Test
  void memoryThatAGraphUses_isUnmappedAfterTheGraph() {
    try (DeviceMemoryResource resource = mapped()) {
      for (boolean isPlain : new boolean[] {false, true}) {
        int before = driver.frees.get();
        DeviceBuffer buffer =
            isPlain
                ? device.importBuffer(descriptor(PLAIN, 9, 0, 64), one)
                : imported(resource, 1, one);
        CudaGraph graph = two.capture(() -> buffer.fill((byte) 1, two));
        CudaGraphExec executable = graph.instantiate();
        graph.close();
        buffer.close();
        for (int i = 0; i < 3; i++) {
          executable.launch(one);
          device.synchronize();
          assertThat(cuda.leaksFound()).isZero();
          cuda.engine().imports().settle();
        }
        assertThat(driver.frees).as("plain: %s", isPlain).hasValue(before);
        executable.close();
        settleUntilFreed(before + 1);
      }
    }
  }

  /** Its stream is gone, so that it is freed in order of the null stream, which is behind. */
  @Test
  void importWhileTheFreeIsQueuedInTheNullStream_waitsForIt() {
    DeviceMemoryResource resource = mapped();
    CudaStream gone = device.createStream(StreamOptions.NON_BLOCKING);
    DeviceBuffer first = imported(resource, 1, gone);
    gone.synchronize();
    gone.close();
    CountDownLatch gate = gate(device.nullStream());
    first.close();
    assertThat(driver.frees).as("queued").hasValue(1);
    driver.during =
        call -> {
          if (call.equals("wait")) {
            gate.countDown();
          }
          assertThat(gate.getCount()).as("%s before the free", call).isZero();
          return call;
        };
    DeviceBuffer second = resource.importBuffer(descriptor(1, 0, 64), two);
    driver.during = call -> call;
    resource.close();
    assertThat(driver.poolsOpen).hasValue(1);
    device.synchronize();
    second.close();
    device.synchronize();
    assertThat(cuda.leaksFound()).isZero();
    assertThat(driver.poolsOpen).hasValue(0);
  }

  /** The pool must not be destroyed before that. */
  @Test
  void poolWhoseLastFreeIsQueuedInTheNullStream_endsBehindIt() {
    DeviceMemoryResource resource = mapped();
    CudaStream gone = device.createStream(StreamOptions.NON_BLOCKING);
    DeviceBuffer buffer = imported(resource, 1, gone);
    gone.synchronize();
    gone.close();
    CountDownLatch gate = gate(device.nullStream());
    buffer.close();
    assertThat(driver.frees).hasValue(1);
    resource.close();
    assertThat(cuda.leaksFound()).isZero();
    assertThat(driver.poolsOpen).as("the free is queued").hasValue(1);
    gate.countDown();
    device.nullStream().synchronize();
    assertThat(cuda.leaksFound()).isZero();
    assertThat(driver.poolsOpen).hasValue(0);
  }

  /** A driver that cannot say whether the work is done does not say that it is. */
  @Test
  void memoryWhoseStreamCannotBeAskedAbout_staysMapped() {
    try (DeviceMemoryResource resource = mapped()) {
      CudaStream gone = device.createStream(StreamOptions.NON_BLOCKING);
      DeviceBuffer buffer = imported(resource, 1, gone);
      buffer.recordUse(one);
      CountDownLatch gate = gate(one);
      gone.close();
      buffer.close();
      for (int i = 0; i < 3; i++) {
        driver.failing.put("eventQuery", CudaStatus.UNKNOWN);
        cuda.engine().imports().settle();
        assertThat(driver.failing).as("was asked").isEmpty();
        assertThat(driver.frees).hasValue(0);
      }
      driver.saysNothingOfEvents = true;
      cuda.engine().imports().settle();
      driver.saysNothingOfEvents = false;
      assertThat(driver.frees).hasValue(0);
      gate.countDown();
      one.synchronize();
      driver.failing.put("eventQuery", CudaStatus.UNKNOWN);
      cuda.engine().imports().settle();
      settleUntilFreed(1);
    }
  }

  /** Nothing can be freed there any more, and what was freed is another's by now. */
  @Test
  void freeThatMayHaveBeenDone_isNotMadeAgain() {
    DeviceMemoryResource resource = mapped();
    DeviceBuffer buffer = imported(resource, 1, one);
    long address = buffer.address();
    driver.failing.put("memFreeAsync", CudaStatus.ILLEGAL_ADDRESS);
    assertThatThrownBy(buffer::close).isInstanceOf(CudaException.class);
    driver.memory().memFree(0, address); // as the driver may have done
    AtomicInteger again = new AtomicInteger();
    driver.during =
        call -> {
          again.addAndGet(call.equals("free") ? 1 : 0);
          return call;
        };
    cuda.close();
    assertThat(driver.frees).as("the one above").hasValue(1);
    assertThat(again).hasValue(0);
  }

  private List<DriverStream> behind(DeviceMemoryResource resource) {
    Mappings table = cuda.engine().imports();
    Mapping memory =
        table.open(
            Mappings.Key.ofPool(descriptor(1, 0, 64), null),
            new MappingSource.OfPool(resource.pool(), device.core()));
    List<DriverStream> behind = List.copyOf(memory.behind);
    table.close(memory, two.state, null);
    return behind;
  }

  /** There is nothing to be waited for. */
  @Test
  void streamsOfUsersThatAreDone_areNotRemembered() {
    try (DeviceMemoryResource resource = mapped();
        DeviceBuffer _ = imported(resource, 1, two)) {
      for (int i = 0; i < 5; i++) {
        CudaStream user = device.createStream(StreamOptions.NON_BLOCKING);
        DeviceBuffer buffer = imported(resource, 1, user);
        buffer.fill((byte) 1, user);
        buffer.recordUse(one);
        user.synchronize();
        buffer.close();
        assertThat(behind(resource)).isEmpty();
      }
      CountDownLatch gate = gate(one);
      DeviceBuffer busy = resource.importBuffer(descriptor(1, 0, 64), one);
      busy.close();
      assertThat(behind(resource)).containsExactly(one.state);
      gate.countDown();
      one.synchronize();
    }
  }

  /** A mapping may have more than the one allocation, so that plain ones are known by a byte. */
  @Test
  void plainMemoryWhoseMappingsReachIntoEachOther_isTakenAsItIs() {
    driver.growth = 1L << 30;
    List<DeviceBuffer> open = new ArrayList<>();
    for (int i = 1; i <= 4; i++) {
      open.add(device.importBuffer(descriptor(PLAIN, i, 0, 64), one));
    }
    assertThat(driver.imports).hasValue(4);
    assertThat(open.stream().map(DeviceBuffer::address).distinct()).hasSize(4);
    open.forEach(DeviceBuffer::close);
    assertThat(driver.frees).hasValue(4);
  }

  /** Else the free of the one would end the other. */
  @Test
  void memoryThatReachesIntoAnotherImport_isRefused_andTheOtherStays() {
    try (DeviceMemoryResource resource = mapped()) {
      long below = driver.ordered().memAllocAsync(0, FakeSharing.ALLOCATION_BYTES, 0);
      DeviceBuffer upper = imported(resource, 1, one);
      assertThat(upper.address()).isGreaterThan(below);
      driver.growth = upper.address() - below;
      driver.places = _ -> below;
      assertThatThrownBy(() -> resource.importBuffer(descriptor(2, 0, 64), one))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("overlap memory that is imported as another allocation");
      assertThat(driver.frees).hasValue(0);
      driver.growth = 0;
      driver.places = address -> address;
      upper.fill((byte) 1);
      imported(resource, 2, one).close();
      upper.close();
      one.synchronize();
      driver.ordered().memFreeAsync(0, below, 0);
    }
  }

  /** Who has a mapping cannot be at another place too. */
  @Test
  void memoryThatIsMapped_isNotJoinedToAnother_whateverTheDriverSays() {
    try (DeviceMemoryResource resource = mapped();
        DeviceMemoryResource same = mapped();
        DeviceBuffer first = imported(resource, 1, one);
        DeviceBuffer second = imported(resource, 2, one)) {
      long other = second.address();
      driver.places = _ -> other;
      assertThatThrownBy(() -> same.importBuffer(descriptor(1, 0, 64), one))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("overlap memory that is imported as another allocation");
      driver.places = address -> address;
      assertThat(driver.frees).hasValue(0);
      try (DeviceBuffer third = same.importBuffer(descriptor(1, 0, 64), one)) {
        assertThat(third.address()).isEqualTo(first.address());
      }
    }
  }

  /** The driver is asked again once that is gone. */
  @Test
  void memoryThatReachesIntoWhatIsBeingFreed_isMappedAfterThat() {
    try (DeviceMemoryResource resource = mapped()) {
      long below = driver.ordered().memAllocAsync(0, FakeSharing.ALLOCATION_BYTES, 0);
      DeviceBuffer upper = imported(resource, 1, one);
      CountDownLatch gate = gate(one);
      upper.close();
      driver.growth = upper.address() - below;
      AtomicInteger asked = new AtomicInteger();
      driver.places = address -> asked.getAndIncrement() == 0 ? below : address;
      driver.during =
          call -> {
            if (call.equals("wait")) {
              driver.growth = 0;
              gate.countDown();
            }
            return call;
          };
      try (DeviceBuffer next = resource.importBuffer(descriptor(2, 0, 64), two)) {
        assertThat(gate.getCount()).as("the free was waited for").isZero();
        assertThat(asked).hasValue(2);
        assertThat(next.address()).isNotEqualTo(below);
        device.synchronize();
      }
      driver.during = call -> call;
      device.synchronize();
      driver.ordered().memFreeAsync(0, below, 0);
    }
  }

  /** What the driver locks as it frees could be what the callback waits for. */
  @Test
  void plainMemoryThatIsClosedInACallback_isUnmappedAfterThat() {
    DeviceBuffer buffer = device.importBuffer(descriptor(PLAIN, 9, 0, 64), one);
    two.addCallback(
            () -> {
              buffer.close();
              assertThat(buffer.isClosed()).isTrue();
              assertThat(driver.frees).hasValue(0);
            })
        .join();
    settleUntilFreed(1);
  }
}
