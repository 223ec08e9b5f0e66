package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.EventOptions;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.CudaTest;
import java.lang.foreign.ValueLayout;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;

/** The programs of docs/guide/streams.md. */
class StreamsGuideTest {
  @CudaTest
  void scope_restoresWhatWasCurrent(Cuda cuda) {
    CudaDevice device = cuda.device(0);
    try (CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING)) {
      try (Scope _ = stream.use()) { // its device becomes current too
        assertThat(cuda.currentStream()).isEqualTo(stream);
      }
      assertThat(cuda.currentStream()).isEqualTo(device.nullStream());
    }
  }

  @CudaTest
  void streams_areOrderedByWaiting(Cuda cuda) {
    CudaDevice device = cuda.currentDevice();
    try (CudaStream producer = device.createStream(StreamOptions.NON_BLOCKING);
        CudaStream consumer = device.createStream(StreamOptions.NON_BLOCKING);
        Buffer source = cuda.allocate(1 << 20, producer);
        Buffer target = cuda.allocate(1 << 20, consumer)) {
      source.fill((byte) 3, producer);
      consumer.waitFor(producer); // the device waits, this thread does not
      target.copyFrom(source, consumer);
      consumer.synchronize(); // this thread waits
      assertThat(consumer.isDone()).isTrue();
    }
  }

  @CudaTest
  void events_measureTime(Cuda cuda) {
    CudaDevice device = cuda.currentDevice();
    try (CudaStream stream = device.createStream();
        CudaEvent start = device.createEvent();
        CudaEvent end = device.createEvent();
        Buffer buffer = cuda.allocate(64 << 20, stream)) {
      start.record(stream);
      buffer.fill((byte) 1, stream);
      end.record(stream);
      end.synchronize();
      double millis = CudaEvent.elapsedMillis(start, end);
      assertThat(millis).isPositive();
    }
  }

  @CudaTest
  void eventWithoutTiming_isTheCheapestOrder(Cuda cuda) {
    CudaDevice device = cuda.currentDevice();
    try (CudaStream one = device.createStream();
        CudaStream two = device.createStream();
        CudaEvent ready = device.createEvent(EventOptions.ORDER_ONLY)) {
      ready.record(one);
      two.waitFor(ready);
      two.synchronize();
      assertThat(ready.isDone()).isTrue();
    }
  }

  @CudaTest
  void callbacks_runInOrderAndKeepTheirExceptions(Cuda cuda) {
    try (CudaStream stream = cuda.currentDevice().createStream()) {
      StringBuilder seen = new StringBuilder();
      CompletableFuture<Void> first =
          stream.addCallback((on, word) -> seen.append(word), "hello"); // StreamCallback, argument
      CompletableFuture<Void> second =
          stream.addCallback(() -> {
            throw new IllegalStateException("from a callback");
          });
      first.join();
      assertThat(seen).hasToString("hello");
      assertThatThrownBy(second::join)
          .isInstanceOf(CompletionException.class)
          .hasRootCauseMessage("from a callback");
      stream.onComplete().thenRun(() -> seen.append(" done")).join();
      assertThat(seen).hasToString("hello done");
    }
  }

  @CudaTest
  void callback_holdsItsStream(Cuda cuda) {
    try (CudaStream stream = cuda.currentDevice().createStream();
        Buffer result = cuda.allocate(64, stream);
        PinnedBuffer host = cuda.allocatePinned(64)) {
      StringBuilder seen = new StringBuilder();
      for (byte step = 0; step < 3; step++) {
        result.fill(step, stream);
        host.copyFrom(result, stream);
        stream.addCallback( // the next copy waits for it
            (on, status, number) -> {
              if (status == CudaStatus.SUCCESS) {
                seen.append(host.segment().get(ValueLayout.JAVA_BYTE, 0) == number);
              }
            },
            step);
      }
      stream.synchronize(); // the callbacks have returned
      assertThat(seen).hasToString("truetruetrue");
    }
  }

  @CudaTest
  void foreignStream_isWrappedAndNotDestroyed(Cuda cuda) {
    try (CudaStream theirs = cuda.device(0).createStream()) { // stands for another library's
      long handle = theirs.handle();
      try (CudaStream wrapped = cuda.device(0).wrapStream(handle, null)) {
        assertThat(wrapped).isEqualTo(theirs); // the same stream of the driver
      }
      theirs.synchronize(); // still there
    }
  }

  @CudaTest(devices = 2)
  void copies_goBetweenDevices(Cuda cuda) {
    CudaDevice one = cuda.device(0);
    CudaDevice two = cuda.device(1);
    try (Buffer source = cuda.allocate(64, one.nullStream());
        Buffer target = cuda.allocate(64, two.nullStream())) {
      source.fill((byte) 7);
      target.copyFrom(source); // directly where the devices are peers, else through the host
    }
    if (two.canAccess(one)) {
      two.enablePeerAccess(one); // again does nothing
    }
  }
}
