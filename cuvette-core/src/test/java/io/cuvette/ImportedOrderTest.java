package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.share.Mapping;
import io.cuvette.internal.share.MappingSource;
import io.cuvette.internal.share.Mappings;
import io.cuvette.internal.stream.DriverStream;
import java.lang.ref.WeakReference;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Behind what work imported memory is freed, and its pool after it. */
class ImportedOrderTest extends OverFakeSharing {
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(30);

  private final CudaStream one = device.createStream();
  private final CudaStream two = device.createStream();
  private final CudaStream three = device.createStream();

  private DeviceBuffer imported(DeviceMemoryResource resource, CudaStream stream) {
    return resource.importBuffer(descriptor(1, 0, 64), stream);
  }

  @Test
  void lastClose_freesBehindTheStreamsOfEarlierUsers() {
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer first = imported(resource, one);
      DeviceBuffer second = imported(resource, two);
      CountDownLatch gate = gate(one);
      first.close();
      second.close();
      assertThat(driver.frees).as("in stream order, at once").hasValue(1);
      assertThat(isHeld(two)).as("the free waits for stream one").isTrue();
      gate.countDown();
      two.synchronize();
    }
  }

  @Test
  void lastClose_freesBehindOtherStreamsThatEarlierUsersUsed() {
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer first = imported(resource, one);
      DeviceBuffer second = imported(resource, two);
      CountDownLatch gate = gate(three);
      first.recordUse(three);
      first.close();
      second.close();
      assertThat(isHeld(two)).as("the free waits for stream three").isTrue();
      gate.countDown();
      two.synchronize();
    }
  }

  @Test
  void streamThatCannotBeAskedAtAClose_isWaitedForByTheLast() {
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer first = imported(resource, one);
      DeviceBuffer second = imported(resource, two);
      CountDownLatch gate = gate(one);
      driver.failing.put("eventQuery", CudaStatus.UNKNOWN);
      first.close();
      assertThat(driver.failing).as("was asked").isEmpty();
      second.close();
      assertThat(isHeld(two)).isTrue();
      gate.countDown();
      two.synchronize();
    }
  }

  /** Nobody may come by again. */
  @Test
  void waitForTheDevice_isTheEndOfWhatWaitedForItsStreams_andOfItsPool() {
    DeviceMemoryResource resource = mapped();
    DeviceBuffer buffer = imported(resource, one);
    CountDownLatch gate = gate(two);
    buffer.recordUse(two);
    buffer.close();
    resource.close();
    assertThat(driver.poolsOpen).hasValue(1);
    gate.countDown();
    device.synchronize();
    assertThat(driver.frees).hasValue(1);
    assertThat(driver.poolsOpen).hasValue(0);
  }

  @Test
  void plainMemory_isClosedWhenTheWorkOfAllItsUsersIsDone() {
    BufferDescriptor plain = descriptor(BufferDescriptor.Kind.PLAIN, 9, 0, 64);
    DeviceBuffer first = device.importBuffer(plain, one);
    DeviceBuffer second = device.importBuffer(plain, two);
    AtomicBoolean done = new AtomicBoolean();
    driver.streams().launchHostFunc(0, one.handle(), () -> done.set(true));
    driver.during =
        call -> {
          assertThat(done.get() || !call.equals("close")).as("not in use at its %s", call).isTrue();
          return call;
        };
    first.close();
    second.close();
    assertThat(driver.frees).hasValue(1);
  }

  @Test
  void plainMemory_isOpenedOnceForEachDevice() {
    BufferDescriptor plain = descriptor(BufferDescriptor.Kind.PLAIN, 9, 0, 64);
    try (DeviceBuffer here = device.importBuffer(plain);
        DeviceBuffer there = cuda.device(1).importBuffer(plain)) {
      assertThat(there.address()).isNotEqualTo(here.address());
      assertThat(driver.imports).hasValue(2);
    }
    assertThat(driver.frees).hasValue(2);
  }

  @Test
  void streamThatCannotBeUsed_isRefusedBeforeTheDriver() {
    BufferDescriptor plain = descriptor(BufferDescriptor.Kind.PLAIN, 9, 0, 64);
    one.close();
    try (DeviceMemoryResource resource = mapped();
        Cuda other = Cuda.open(CudaOptions.simulated())) {
      CudaStream foreign = other.device(0).nullStream();
      CudaStream elsewhere = cuda.device(1).nullStream();
      assertThatThrownBy(() -> imported(resource, one)).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> device.importBuffer(plain, one))
          .isInstanceOf(IllegalStateException.class);
      for (CudaStream wrong : List.of(foreign, elsewhere)) {
        assertThatThrownBy(() -> imported(resource, wrong))
            .isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> device.importBuffer(plain, wrong))
            .isInstanceOf(IllegalArgumentException.class);
      }
      assertThat(driver.imports).hasValue(0);
    }
  }

  @Test
  void memoryThatADriverMapsAtASecondAddress_isFreedAtBothByTheLast() {
    try (DeviceMemoryResource first = mapped();
        DeviceMemoryResource second = mapped();
        DeviceMemoryResource third = mapped()) {
      List<DeviceBuffer> buffers = new ArrayList<>();
      buffers.add(imported(first, one));
      driver.mapsAgain = true;
      buffers.add(imported(second, one));
      driver.mapsAgain = false;
      buffers.add(imported(third, one));
      assertThat(driver.mappings()).isEqualTo(2);
      buffers.removeLast().close();
      buffers.removeLast().close();
      assertThat(driver.frees).hasValue(0);
      buffers.removeLast().close();
      assertThat(driver.frees).hasValue(2);
    }
  }

  @Test
  void bufferOfAStreamThatIsGone_isFreedAtOnce() {
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer buffer = imported(resource, one);
      one.synchronize();
      one.close();
      buffer.close();
      assertThat(driver.frees).hasValue(1);
    }
  }

  @Test
  void bufferOfAStreamThatIsGone_isFreedOnceAllItsOtherStreamsAreDone() {
    for (CudaStream early : List.of(one, three)) {
      driver.frees.set(0);
      try (DeviceMemoryResource resource = mapped()) {
        CudaStream gone = device.createStream();
        CudaStream late = early == one ? three : one;
        DeviceBuffer buffer = imported(resource, gone);
        List.of(one, three).forEach(buffer::recordUse);
        CountDownLatch ofEarly = gate(early);
        late.waitFor(early);
        CountDownLatch ofLate = gate(late);
        gone.close();
        buffer.close();
        ofEarly.countDown();
        early.synchronize();
        cuda.engine().imports().settle();
        assertThat(driver.frees).as("%s is busy", late).hasValue(0);
        ofLate.countDown();
        late.synchronize();
        cuda.engine().imports().settle();
        assertThat(driver.frees).hasValue(1);
      }
    }
  }

  @Test
  void memoryOfAStreamThatCaptured_isFreedByALaterImport() {
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer buffer = imported(resource, one);
      driver.captures().streamBeginCapture(0, one.handle(), 2);
      buffer.close();
      assertThat(driver.frees).hasValue(0);
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, one.handle()));
      List<DeviceBuffer> later = new ArrayList<>();
      boolean _ =
          Await.until(
              () -> {
                later.add(resource.importBuffer(descriptor(2, 0, 64), two));
                return driver.frees.get() > 0;
              },
              PATIENCE_NANOS);
      assertThat(driver.frees).hasValue(1);
      later.forEach(DeviceBuffer::close);
    }
  }

  @Test
  void importWhileTheFreeIsQueued_waitsForIt_andHoldsItsPool() {
    DeviceMemoryResource resource = mapped();
    DeviceBuffer first = imported(resource, one);
    CountDownLatch gate = gate(one);
    first.close();
    assertThat(driver.frees).as("queued").hasValue(1);
    DeviceBuffer second = importedWhileHeld(resource, gate);
    assertThat(behind(resource)).as("of the mapping before").isEmpty();
    resource.close();
    assertThat(driver.poolsOpen).hasValue(1);
    second.close();
    device.synchronize();
    cuda.leaksFound();
    assertThat(driver.poolsOpen).hasValue(0);
  }

  /** By another handle of it, which only the place tells. */
  @Test
  void importWhereMemoryIsBeingFreed_asksTheDriverAgain_onceThatIsDone() {
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer first = imported(resource, one);
      long place = first.address();
      CountDownLatch gate = gate(one);
      first.close();
      AtomicInteger asked = new AtomicInteger();
      driver.places = address -> asked.getAndIncrement() == 0 ? place : address;
      driver.during =
          call -> {
            if (call.equals("wait")) {
              gate.countDown();
            }
            return call;
          };
      try (DeviceBuffer second = resource.importBuffer(descriptor(2, 0, 64), two)) {
        assertThat(gate.getCount()).as("the free was waited for").isZero();
        assertThat(asked).hasValue(2);
        assertThat(second.address()).isNotEqualTo(place);
      }
      driver.during = call -> call;
      imported(resource, one).close();
    }
  }

  /** Imports, and opens the gate only when the library waits for the driver. */
  private DeviceBuffer importedWhileHeld(DeviceMemoryResource resource, CountDownLatch gate) {
    driver.during =
        call -> {
          if (call.equals("wait")) {
            gate.countDown();
          }
          assertThat(gate.getCount()).as("%s before stream one came to the free", call).isZero();
          return call;
        };
    DeviceBuffer imported = imported(resource, two);
    driver.during = call -> call;
    return imported;
  }

  @Test
  void closedBuffer_isForgottenByItsCuda() {
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer buffer = imported(resource, one);
      WeakReference<?> block = new WeakReference<>(buffer.block());
      buffer.close();
      buffer = imported(resource, one);
      assertThat(Tries.isCollected(() -> block.refersTo(null))).isTrue();
      buffer.close();
    }
  }

  @Test
  void pool_isDestroyedWhenTheFreeOfItsLastBufferIsDone() {
    DeviceMemoryResource resource = mapped();
    DeviceBuffer buffer = imported(resource, one);
    CountDownLatch gate = gate(one);
    buffer.close();
    resource.close();
    assertThat(driver.poolsOpen).hasValue(1);
    gate.countDown();
    one.synchronize();
    assertThat(driver.poolsOpen).hasValue(0);
  }

  /** But not beside a callback, whose work its end would wait for. */
  @Test
  void forgottenBuffer_isTakenBack_onceNoCallbackHoldsAStream() {
    BufferDescriptor plain = descriptor(BufferDescriptor.Kind.PLAIN, 9, 0, 64);
    try (DeviceMemoryResource resource = mapped()) {
      for (boolean ofPool : new boolean[] {true, false}) {
        driver.frees.set(0);
        DeviceBuffer buffer = ofPool ? imported(resource, one) : device.importBuffer(plain, one);
        cuda.engine().session().frees().beginHold();
        assertThat(cuda.engine().session().leaks().found(buffer.block())).isFalse();
        assertThat(driver.frees).hasValue(0);
        cuda.engine().session().frees().endHold();
        assertThat(cuda.engine().session().leaks().found(buffer.block())).isTrue();
        assertThat(driver.frees).hasValue(1);
        assertThat(cuda.leaksFound()).isPositive();
      }
    }
  }

  /**
   * Else it would be freed under who has just imported it. The thread that imports knows all of it
   * as busy, and is asking for the last of two; which that is decides a table.
   */
  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void importWhileWhatWasLeftIsFreed_isOfMemoryThatIsMapped(int number) throws Exception {
    try (DeviceMemoryResource resource = mapped()) {
      CountDownLatch gateOfTwo = leave(resource, 1, two);
      CountDownLatch gateOfThree = leave(resource, 2, three);
      assertThat(driver.mappings()).isEqualTo(2);
      AtomicReference<DeviceBuffer> again = new AtomicReference<>();
      Thread importing =
          Thread.ofPlatform()
              .unstarted(() -> again.set(resource.importBuffer(descriptor(number, 0, 64), one)));
      AtomicInteger answers = new AtomicInteger();
      CountDownLatch isAnswered = new CountDownLatch(1);
      CountDownLatch isBeingFreed = new CountDownLatch(1);
      driver.answered =
          () -> {
            if (Thread.currentThread() == importing && answers.incrementAndGet() == 2) {
              isAnswered.countDown();
              Latches.await(isBeingFreed);
            }
          };
      driver.during =
          call -> {
            if (call.equals("free")) {
              isBeingFreed.countDown();
              Await.until(
                  () -> importing.getState() == Thread.State.WAITING || !importing.isAlive());
            }
            return call;
          };
      importing.start();
      Latches.await(isAnswered);
      gateOfTwo.countDown();
      gateOfThree.countDown();
      two.synchronize();
      three.synchronize();
      cuda.engine().imports().settle();
      importing.join();
      driver.during = call -> call;
      assertThat(driver.isMapped(again.get().address())).isTrue();
      again.get().close();
    }
  }

  /** Leaves memory that is freed once a stream is done, which is not its own. */
  private CountDownLatch leave(DeviceMemoryResource resource, int number, CudaStream user) {
    CudaStream home = device.createStream();
    DeviceBuffer buffer = resource.importBuffer(descriptor(number, 0, 64), home);
    CountDownLatch gate = gate(user);
    buffer.recordUse(user);
    home.synchronize();
    home.close();
    buffer.close();
    return gate;
  }

  @Test
  void failedImport_doesNotHoldThePool() {
    DeviceMemoryResource resource = mapped();
    driver.failing.put("memPoolImportPointer", CudaStatus.OUT_OF_MEMORY);
    assertThatThrownBy(() -> imported(resource, one)).isInstanceOf(CudaException.class);
    resource.close();
    assertThat(driver.poolsOpen).hasValue(0);
  }

  @Test
  void streamsOfManyUsers_areForgottenOnceTheyAreDone() {
    try (DeviceMemoryResource resource = mapped();
        DeviceBuffer _ = imported(resource, two)) {
      CountDownLatch gate = gate(three);
      one.waitFor(three);
      for (int i = 0; i < 100; i++) {
        imported(resource, one).close();
      }
      assertThat(behind(resource)).as("each once").containsExactly(one.state);
      List<CudaStream> many = new ArrayList<>();
      for (int i = 0; i < 40; i++) {
        CudaStream stream = device.createStream();
        stream.waitFor(three);
        imported(resource, stream).close();
        many.add(stream);
      }
      assertThat(behind(resource)).hasSize(41);
      gate.countDown();
      many.forEach(CudaStream::close);
      device.synchronize();
      imported(resource, one).close();
      assertThat(behind(resource)).hasSizeLessThan(2);
    }
  }

  /** With the 32nd. */
  @Test
  void streamsOfUsers_areLookedAtAgain_whenTheyAreMany() {
    try (DeviceMemoryResource resource = mapped();
        DeviceBuffer _ = imported(resource, two)) {
      CountDownLatch gate = gate(three);
      for (int i = 1; i < 32; i++) {
        CudaStream stream = device.createStream();
        stream.waitFor(three);
        imported(resource, stream).close();
        stream.close();
      }
      gate.countDown();
      device.synchronize();
      assertThat(behind(resource)).hasSize(31);
      CountDownLatch gateOfOne = gate(one);
      imported(resource, one).close();
      assertThat(behind(resource)).containsExactly(one.state);
      gateOfOne.countDown();
    }
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

  /** Nothing is behind the work of a stream that cannot be asked. */
  @Test
  void bufferThatACapturingStreamUsed_isFreedOnceItsWorkIsDone_andNotBefore() {
    try (DeviceMemoryResource resource = mapped()) {
      DeviceBuffer buffer = imported(resource, two);
      CountDownLatch gate = gate(one);
      buffer.recordUse(one);
      driver.captures().streamBeginCapture(0, one.handle(), 2);
      buffer.close();
      assertThat(driver.frees).as("one is busy, and captures").hasValue(0);
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, one.handle()));
      cuda.engine().imports().settle();
      assertThat(driver.frees).as("one is busy").hasValue(0);
      gate.countDown();
      one.synchronize();
      boolean _ =
          Await.until(
              () -> {
                cuda.engine().imports().settle();
                return driver.frees.get() > 0;
              },
              PATIENCE_NANOS);
      assertThat(driver.frees).hasValue(1);
    }
  }

  /**
   * The null stream takes turns with the one that captures, so that no free can be queued there.
   */
  @Test
  void bufferOfAStreamThatIsGone_isFreedPlainly_whereTheNullStreamCannotFreeIt() {
    try (DeviceMemoryResource resource = mapped();
        CudaStream blocking = device.createStream(StreamOptions.DEFAULTS)) {
      DeviceBuffer buffer = imported(resource, one);
      one.synchronize();
      one.close();
      driver.captures().streamBeginCapture(0, blocking.handle(), 2);
      buffer.close();
      assertThat(driver.frees).hasValue(1);
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, blocking.handle()));
    }
  }
}
