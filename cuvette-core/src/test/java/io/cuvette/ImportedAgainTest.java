package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.IpcCalls;
import io.cuvette.internal.base.Await;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** What is mapped, or was until now, and is imported once more. */
class ImportedAgainTest extends OverFakeSharing {
  private static final int READ = 8;

  private int known() {
    return cuda.engine().imports().size();
  }

  private static Thread started(Runnable work) {
    return Thread.ofPlatform().start(work);
  }

  private static void awaitIdle(Thread thread) {
    Await.until(() -> thread.getState() == Thread.State.WAITING || !thread.isAlive());
  }

  /** One of many descriptors of the same memory, for drivers that read so much of them. */
  private static BufferDescriptor altered(BufferDescriptor.Kind kind, int memory, int alteration) {
    byte[] handle = new byte[IpcCalls.HANDLE_BYTES];
    Arrays.fill(handle, 0, READ, (byte) memory);
    handle[READ + 1] = (byte) alteration;
    return new BufferDescriptor(kind, 0, 64, OTHER_PROCESS, new UUID(0, 0), handle);
  }

  /** For a stream that does not wait for the null stream, in which the driver makes memory. */
  private DeviceBuffer imported(DeviceMemoryResource resource, CudaStream stream) {
    DeviceBuffer imported = resource.importBuffer(descriptor(1, 0, 64), stream);
    driver.streams().streamSynchronize(0, 0);
    return imported;
  }

  /** The null stream may be busy with something else. */
  @Test
  void mappingWhoseFreeIsDone_isForgotten_whateverTheNullStreamDoes() {
    try (DeviceMemoryResource resource = mapped();
        CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING)) {
      CountDownLatch gate = gate(stream);
      imported(resource, stream).close();
      assertThat(known()).isEqualTo(1);
      MemorySegment word = driver.memory().memHostAlloc(0, 4096, 0); // functions take turns
      driver.streams().streamWaitValue32(0, 0, word.address(), 1, 1);
      gate.countDown();
      stream.synchronize();
      cuda.engine().imports().settle();
      assertThat(known()).isZero();
      word.set(ValueLayout.JAVA_INT, 0, 1);
      driver.streams().streamSynchronize(0, 0);
      driver.memory().memFreeHost(0, word.address());
    }
  }

  @Test
  void mappingThatWasFreedPlainly_isMappedAnew() {
    try (DeviceMemoryResource resource = mapped();
        CudaStream blocking = device.createStream(StreamOptions.DEFAULTS);
        CudaStream later = device.createStream(StreamOptions.NON_BLOCKING)) {
      CudaStream gone = device.createStream(StreamOptions.NON_BLOCKING);
      DeviceBuffer buffer = imported(resource, gone);
      gone.synchronize();
      gone.close();
      driver.captures().streamBeginCapture(0, blocking.handle(), 2);
      buffer.close();
      assertThat(known()).as("freed without a stream").isZero();
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, blocking.handle()));
      DeviceBuffer again = imported(resource, later);
      assertThat(driver.imports).hasValue(2);
      assertThat(driver.isMapped(again.address())).isTrue();
      again.close();
    }
  }

  /** Its size is known, and its place. */
  @Test
  void mappingThatIsOfASecondPoolToo_isNotMeasuredAgain() {
    AtomicInteger measured = new AtomicInteger();
    driver.during =
        call -> {
          if (call.equals("size")) {
            measured.incrementAndGet();
          }
          return call;
        };
    try (DeviceMemoryResource one = mapped();
        DeviceMemoryResource two = mapped()) {
      List<Integer> questions = new ArrayList<>();
      List<DeviceBuffer> all = new ArrayList<>();
      for (DeviceMemoryResource each : List.of(one, one, two, two)) {
        measured.set(0);
        all.add(each.importBuffer(descriptor(1, 0, 64)));
        questions.add(measured.get());
      }
      assertThat(driver.imports).hasValue(2);
      int ofEach = questions.getLast(); // is it as large as the buffer?
      assertThat(questions).containsExactly(ofEach + 1, ofEach, ofEach, ofEach);
      all.forEach(DeviceBuffer::close);
    }
    driver.during = call -> call;
  }

  /** The close waits for the import, which then is a user more. */
  @Test
  void mappingThatIsClosedWhileAnotherPoolMapsIt_isLeftToThat() throws Exception {
    AtomicReference<DeviceBuffer> second = new AtomicReference<>();
    CountDownLatch asked = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    try (DeviceMemoryResource one = mapped();
        DeviceMemoryResource two = mapped()) {
      DeviceBuffer first = one.importBuffer(descriptor(1, 0, 64));
      driver.during =
          call -> {
            if (call.equals("imported")) {
              asked.countDown();
              Latches.await(goOn);
            }
            return call;
          };
      Thread importing = started(() -> second.set(two.importBuffer(descriptor(1, 0, 64))));
      Latches.await(asked);
      Thread closing = started(first::close);
      awaitIdle(closing);
      goOn.countDown();
      importing.join();
      closing.join();
      driver.during = call -> call;
      assertThat(driver.frees).hasValue(0);
      assertThat(driver.isMapped(second.get().address())).isTrue();
      second.get().close();
      assertThat(driver.frees).hasValue(1);
    }
  }

  @Test
  void openingThatCannotBeTakenBack_leavesTheOthersFree() throws Exception {
    driver.bytesRead = READ;
    DeviceBuffer one = device.importBuffer(altered(BufferDescriptor.Kind.PLAIN, 9, 1));
    driver.failing.put("ipcCloseMemHandle", CudaStatus.UNKNOWN);
    AtomicReference<DeviceBuffer> two = new AtomicReference<>();
    started(() -> two.set(device.importBuffer(altered(BufferDescriptor.Kind.PLAIN, 9, 2)))).join();
    assertThat(driver.failing).isEmpty();
    AtomicInteger seen = new AtomicInteger();
    Thread other = started(() -> seen.set(known()));
    assertThat(other.join(Duration.ofSeconds(30))).isTrue();
    assertThat(seen).as("read by another thread").hasValue(1);
    two.get().close();
    one.close();
    assertThat(driver.mappings()).isZero();
  }
}
