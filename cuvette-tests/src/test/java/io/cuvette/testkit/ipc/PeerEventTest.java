package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.DriverPoolResource;
import io.cuvette.EventOptions;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Gate;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Peers;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.extension.ExtendWith;

/** Events that order the work of two processes. */
@ExtendWith(Peers.Extension.class)
class PeerEventTest {
  private static final EventOptions SHARED = EventOptions.ORDER_ONLY.withInterprocess(true);
  private static final int SIZE = 10_000;
  private static final int MOST_ASKS = 1000;
  private static final long POLL_NANOS = 50_000;

  @CudaTest(seeds = 3)
  void importersWork_comesBehindTheExporters(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (DriverPoolResource pool = SharedPool.DEVICE.create(subject.cuda());
        Buffer buffer = pool.allocate(SIZE);
        CudaStream stream = device.createStream();
        CudaEvent event = device.createEvent(SHARED);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      device.synchronize();
      child.importPool("pool", SharedPool.DEVICE, pool.allocationHandle());
      child.ask("import", "buffer", "pool", buffer.descriptor());
      child.ask("importEvent", "event", event.descriptor());
      child.ask("stream", "stream");
      assertThat(child.ask("isDone", "event")).as("never recorded").isEqualTo("true");
      try (Gate _ = Gate.on(stream)) {
        buffer.fill((byte) 1, stream);
        event.record(stream);
        child.ask("waitFor", "stream", "event");
        child.ask("fillOn", "buffer", 2, "stream");
        assertThat(child.ask("isDone", "event")).isEqualTo("false");
        assertThat(child.ask("isDone", "stream")).isEqualTo("false");
      }
      stream.synchronize();
      child.ask("finish", "stream");
      assertThat(child.ask("isDone", "event")).isEqualTo("true");
      assertThat(Bytes.of(buffer)).as("written by the exporter first").containsOnly(2);
      child.closeAll("buffer", "pool", "stream", "event");
    }
  }

  @CudaTest(seeds = 3)
  void exportersWork_comesBehindTheImporters(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (DriverPoolResource pool = SharedPool.DEVICE.create(subject.cuda());
        Buffer buffer = pool.allocate(SIZE);
        CudaStream stream = device.createStream();
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      device.synchronize();
      child.importPool("pool", SharedPool.DEVICE, pool.allocationHandle());
      child.ask("import", "buffer", "pool", buffer.descriptor());
      child.ask("stream", "stream");
      child.ask("event", "event");
      try (CudaEvent event = device.importEvent(child.eventDescriptor("event"))) {
        child.ask("gate", "gate", "stream");
        child.ask("fillOn", "buffer", 1, "stream");
        child.ask("record", "event", "stream");
        stream.waitFor(event);
        buffer.fill((byte) 2, stream);
        assertThat(event.isDone()).isFalse();
        assertThat(stream.isDone()).isFalse();
        child.ask("close", "gate");
        child.tell("finish", "stream"); // a simulated device works while someone waits for it
        stream.synchronize();
        child.answer();
        event.synchronize();
        assertThat(event.isDone()).isTrue();
        assertThat(Bytes.of(buffer)).as("written by the importer first").containsOnly(2);
      }
      child.closeAll("buffer", "pool", "stream", "event");
    }
  }

  @CudaTest
  void importer_recordsTheExportersEvent(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (CudaEvent event = device.createEvent(SHARED);
        CudaStream stream = device.createStream();
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("importEvent", "event", event.descriptor());
      child.ask("stream", "stream");
      child.ask("gate", "gate", "stream");
      child.ask("record", "event", "stream");
      stream.waitFor(event);
      assertThat(event.isDone()).isFalse();
      child.ask("close", "gate");
      child.tell("finish", "stream");
      event.synchronize();
      stream.synchronize();
      child.answer();
      child.closeAll("stream", "event");
    }
  }

  @CudaTest
  void hostOfTheImporter_waitsForTheExportersWork(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (CudaEvent event = device.createEvent(SHARED.withBlockingSync(true));
        CudaStream stream = device.createStream();
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("importEvent", "event", event.descriptor());
      try (Gate _ = Gate.on(stream)) {
        event.record(stream);
        child.tell("await", "event");
      }
      stream.synchronize();
      child.answer();
      child.closeAll("event");
    }
  }

  @CudaTest
  void recordedAgain_theEventStandsForTheNewRecord(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (CudaEvent event = device.createEvent(SHARED);
        CudaStream stream = device.createStream();
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("importEvent", "event", event.descriptor());
      for (int round = 0; round < 3; round++) {
        try (Gate _ = Gate.on(stream)) {
          event.record(stream);
          assertThat(child.ask("isDone", "event")).isEqualTo("false");
        }
        stream.synchronize();
        assertThat(child.ask("isDone", "event")).isEqualTo("true");
      }
      child.closeAll("event");
    }
  }

  @CudaTest
  void options_areThoseOfTheExporter_andThereIsNoTime(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("event", "spins");
      child.ask("event", "blocks", "blockingSync");
      try (CudaEvent spins = device.importEvent(child.eventDescriptor("spins"));
          CudaEvent blocks = device.importEvent(child.eventDescriptor("blocks"))) {
        assertThat(spins.options()).isEqualTo(new EventOptions(false, false, true));
        assertThat(blocks.options()).isEqualTo(new EventOptions(true, false, true));
        assertThatThrownBy(() -> CudaEvent.elapsedMillis(spins, blocks))
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("timing");
        assertThat(blocks.descriptor()).isEqualTo(child.eventDescriptor("blocks"));
      }
      child.closeAll("spins", "blocks");
    }
  }

  @CudaTest
  void eventOfOneProcess_isNotShared(Cuda cuda) {
    try (CudaEvent event = cuda.device(0).createEvent(EventOptions.ORDER_ONLY)) {
      assertThatThrownBy(event::descriptor)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("interprocess");
    }
    CudaEvent closed = cuda.device(0).createEvent(SHARED);
    assertThat(closed.descriptor()).isEqualTo(closed.descriptor());
    closed.close();
    assertThatThrownBy(closed::descriptor).isInstanceOf(IllegalStateException.class);
  }

  @CudaTest(seeds = 3)
  void exporterFreesBehindTheImportersFree_byAnEvent(
      Subject subject, Peers peers, Cuda cuda, CudaStream stream) {
    try (DriverPoolResource pool = SharedPool.DEVICE.create(cuda);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.importPool("pool", SharedPool.DEVICE, pool.allocationHandle());
      child.ask("stream", "stream");
      child.ask("event", "event");
      try (CudaEvent event = cuda.device(0).importEvent(child.eventDescriptor("event"))) {
        for (int round = 0; round < 5; round++) {
          Buffer buffer = pool.allocate(SIZE, stream);
          buffer.fill((byte) round, stream);
          stream.synchronize();
          child.ask("importOn", "buffer", "pool", buffer.descriptor(), "stream");
          child.ask("gate", "gate", "stream");
          child.ask("fillOn", "buffer", 100, "stream");
          child.ask("close", "buffer"); // in order of the stream, behind the gate
          child.ask("record", "event", "stream");
          stream.waitFor(event);
          buffer.close();
          assertThat(stream.isDone()).isFalse();
          child.ask("close", "gate");
          child.tell("finish", "stream");
          stream.synchronize();
          child.answer();
          assertThat(pool.attributes().usedMemCurrent()).isZero();
        }
      }
      child.closeAll("pool", "stream", "event");
    }
  }

  /** What the manual leaves undefined: a driver may answer in any way. */
  @CudaTest(simulatedOnly = true)
  void exporterKilled_afterItsRecord_theEventIsDone(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (RemoteSharer child = RemoteSharer.start(peers, subject);
        CudaStream stream = device.createStream()) {
      child.ask("event", "event");
      child.ask("stream", "stream");
      child.ask("record", "event", "stream");
      child.ask("finish", "stream");
      try (CudaEvent event = device.importEvent(child.eventDescriptor("event"))) {
        child.kill();
        stream.waitFor(event);
        stream.synchronize();
        assertThat(event.isDone()).isTrue();
      }
    }
  }

  /** The same. */
  @CudaTest(simulatedOnly = true)
  void exporterKilled_beforeItsRecordIsReached_nobodyWaitsForEver(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (RemoteSharer child = RemoteSharer.start(peers, subject);
        CudaStream stream = device.createStream()) {
      child.ask("event", "event");
      child.ask("stream", "stream");
      child.ask("gate", "gate", "stream");
      child.ask("record", "event", "stream");
      try (CudaEvent event = device.importEvent(child.eventDescriptor("event"))) {
        stream.waitFor(event);
        assertThat(stream.isDone()).isFalse();
        child.kill();
        stream.synchronize();
        assertThat(stream.isDone()).isTrue();
        event.synchronize();
      }
    }
  }

  /** The same, for a program that has nothing else to do than to ask. */
  @CudaTest(simulatedOnly = true)
  void exporterKilled_beforeItsRecordIsReached_isDoneForWhoOnlyAsks(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("event", "event");
      child.ask("stream", "stream");
      child.ask("gate", "gate", "stream");
      child.ask("record", "event", "stream");
      try (CudaEvent event = device.importEvent(child.eventDescriptor("event"))) {
        assertThat(event.isDone()).isFalse();
        child.kill();
        assertThat(asked(event)).isTrue();
      }
    }
  }

  /** Asks often, and long enough for who looks every some milliseconds whether a process lives. */
  private static boolean asked(CudaEvent event) {
    for (int ask = 0; ask < MOST_ASKS; ask++) {
      if (event.isDone()) {
        return true;
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
    return false;
  }

  /** The same. */
  @CudaTest(simulatedOnly = true)
  void handleOfAnExporterThatIsGone_isOneClearError(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("event", "event");
      var descriptor = child.eventDescriptor("event");
      child.kill();
      assertThatThrownBy(() -> device.importEvent(descriptor).close())
          .isInstanceOf(CudaException.class);
    }
  }

  @CudaTest
  void sameEventTwice_isClosedTwice(Subject subject, Peers peers) {
    CudaDevice device = subject.cuda().device(0);
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("event", "event");
      var descriptor = child.eventDescriptor("event");
      try (CudaEvent second = device.importEvent(descriptor)) {
        device.importEvent(descriptor).close();
        assertThat(second.isDone()).isTrue();
      }
      child.closeAll("event");
    }
  }
}
