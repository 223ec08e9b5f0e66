package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.EventDescriptor;
import io.cuvette.EventOptions;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.ScriptedDriver;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Events from one process to another. */
class EventSharingTest extends TwoProcesses {
  private static final EventOptions SHARED = EventOptions.ORDER_ONLY.withInterprocess(true);

  @Test
  void importedEvent_isWhatTheExporterMade() {
    for (boolean blocking : new boolean[] {false, true}) {
      try (CudaEvent ours = here().createEvent(SHARED.withBlockingSync(blocking));
          CudaStream stream = here().createStream()) {
        ours.record(stream);
        EventDescriptor descriptor = EventDescriptor.fromBytes(ours.descriptor().toBytes());
        assertThat(descriptor).isEqualTo(ours.descriptor()).hasSameHashCodeAs(ours.descriptor());
        assertThat(descriptor.deviceUuid()).isEqualTo(here().uuid());
        try (CudaEvent theirs = there().importEvent(descriptor)) {
          assertThat(theirs.options()).isEqualTo(new EventOptions(blocking, false, true));
          assertThat(theirs.device()).isEqualTo(there());
          assertThat(theirs.isRecorded()).isTrue();
          assertThat(theirs.descriptor()).as("passed on").isEqualTo(descriptor);
          assertThatThrownBy(() -> CudaEvent.elapsedMillis(theirs, theirs))
              .isInstanceOf(IllegalStateException.class)
              .hasMessageContaining("timing");
        }
      }
    }
  }

  /** By the methods for each kind of descriptor, in the order of sending. */
  @Test
  void descriptorsOfEventsAndBuffers_arriveOverAChannel(@TempDir Path folder) {
    Duration patience = Duration.ofSeconds(40);
    try (IpcListener listener = IpcListener.open(folder.resolve("socket"));
        IpcChannel sender = IpcChannel.connect(listener.path(), patience);
        IpcChannel receiver = listener.accept(patience);
        CudaEvent event = here().createEvent(SHARED);
        DeviceMemoryResource resource = shared();
        DeviceBuffer buffer = resource.allocate(4096)) {
      sender.send(event.descriptor());
      sender.send(buffer.descriptor());
      sender.send(buffer.slice(8, 16).descriptor());
      assertThat(receiver.receiveEventDescriptor(patience)).isEqualTo(event.descriptor());
      assertThat(receiver.receiveBufferDescriptor(patience)).isEqualTo(buffer.descriptor());
      assertThat(receiver.receiveBufferDescriptor(patience))
          .isEqualTo(buffer.slice(8, 16).descriptor());
    }
  }

  @Test
  void importersStream_waitsForTheExportersWork() {
    try (DeviceMemoryResource resource = shared();
        CudaStream out = here().createStream();
        CudaStream in = there().createStream();
        CudaEvent ours = here().createEvent(SHARED);
        DeviceBuffer buffer = resource.allocate(4096, out);
        DeviceMemoryResource mapped = mapped(resource);
        CudaEvent theirs = there().importEvent(ours.descriptor());
        DeviceBuffer imported = mapped.importBuffer(buffer.descriptor(), in)) {
      buffer.fill((byte) 1, out);
      ours.record(out);
      in.waitFor(theirs);
      imported.fill((byte) 2, in);
      out.synchronize();
      in.synchronize();
      assertThat(bytes(buffer)).containsOnly(2);
      assertThat(theirs.isDone()).isTrue();
      theirs.synchronize();
    }
  }

  @Test
  void importerRecords_andTheExporterWaits() {
    try (CudaEvent ours = here().createEvent(SHARED);
        CudaStream in = there().createStream();
        CudaEvent theirs = there().importEvent(ours.descriptor())) {
      theirs.record(in);
      in.synchronize();
      ours.synchronize();
      assertThat(ours.isDone()).isTrue();
    }
  }

  @Test
  void eventForThisProcess_cannotBeShared() {
    try (CudaEvent timed = here().createEvent();
        CudaEvent order = here().createEvent(EventOptions.ORDER_ONLY)) {
      for (CudaEvent event : new CudaEvent[] {timed, order}) {
        assertThatThrownBy(event::descriptor)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("interprocess");
      }
    }
    CudaEvent closed = here().createEvent(SHARED);
    closed.close();
    assertThatThrownBy(closed::descriptor)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
    assertThatThrownBy(() -> EventOptions.DEFAULTS.withInterprocess(true))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void eventOfThisVeryProcess_isExplained() {
    try (CudaEvent ours = here().createEvent(SHARED)) {
      assertThatThrownBy(() -> here().importEvent(ours.descriptor()))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("this very process");
    }
  }

  @Test
  void eventsLeftOpen_areTakenBack() {
    CudaEvent ours = here().createEvent(SHARED);
    there().importEvent(ours.descriptor());
    there().importEvent(ours.descriptor()).close();
    // nothingIsLeft() counts
  }

  /** Memory that is short says nothing about the event. */
  @Test
  void importWithoutMemory_isNotExplainedByTheEvent() {
    try (ScriptedDriver script = new ScriptedDriver();
        Cuda importing = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        CudaEvent ours = here().createEvent(SHARED)) {
      for (CudaStatus status :
          new CudaStatus[] {CudaStatus.OUT_OF_MEMORY, CudaStatus.OPERATING_SYSTEM}) {
        script.fail("ipcOpenEventHandle", status, 1);
        assertThatThrownBy(() -> importing.device(0).importEvent(ours.descriptor()))
            .isInstanceOfSatisfying(
                CudaException.class, e -> assertThat(e.status()).isEqualTo(status))
            .message()
            .doesNotContain("the event's process");
      }
    }
  }
}
