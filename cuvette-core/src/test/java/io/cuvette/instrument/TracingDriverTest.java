package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class TracingDriverTest {
  private final TinyDriver tiny = new TinyDriver();
  private final AtomicLong clock = new AtomicLong();
  private final TraceRing ring = new TraceRing(2);
  private final CudaDriver driver = TracingDriver.of(tiny.driver, ring, () -> clock.getAndAdd(5));

  @Test
  void call_isToldWithArgumentsResultAndTime() {
    long address = driver.memory().memAlloc(0, 512);

    TracedCall call = ring.calls().getFirst();
    assertThat(call.call()).startsWith("memAlloc(").contains("0, ").endsWith("512)");
    assertThat(call.result()).isEqualTo("0x" + Long.toHexString(address));
    assertThat(call.error()).isNull();
    assertThat(call.elapsedNanos()).isEqualTo(5);
    assertThat(call.sequence()).isEqualTo(1);
    assertThat(call)
        .asString()
        .contains("= " + call.result())
        .contains("(5 ns)")
        .contains(Thread.currentThread().getName());
  }

  @Test
  void secondCall_tookAsLong_whateverTheTime() {
    driver.devices().ctxSynchronize(0);
    driver.devices().ctxSynchronize(0);

    assertThat(ring.calls()).extracting(TracedCall::elapsedNanos).containsExactly(5L, 5L);
    assertThat(ring.calls()).extracting(TracedCall::startNanos).containsExactly(0L, 10L);
  }

  @Test
  void threadWithoutAName_isToldByItsNumber() throws Exception {
    Thread thread = Thread.ofVirtual().start(() -> driver.devices().deviceGetCount());
    thread.join();
    assertThat(ring.calls())
        .extracting(TracedCall::thread)
        .containsExactly("#" + thread.threadId());
    Thread named =
        Thread.ofVirtual().name("worker").start(() -> driver.devices().ctxSynchronize(0));
    named.join();
    assertThat(ring.calls().getLast().thread()).isEqualTo("worker");
  }

  @Test
  void error_isToldAndThrown() {
    assertThatThrownBy(() -> driver.memory().memFree(0, 1)).isInstanceOf(CudaException.class);

    assertThat(ring.calls())
        .singleElement()
        .satisfies(call -> {
          assertThat(call.error()).isInstanceOf(CudaException.class);
          assertThat(call.result()).isNull();
          assertThat(call).asString().contains("! io.cuvette.driver.CudaException");
        });
  }

  @Test
  void callWithoutResult_isVoid_andCloseIsTold() {
    driver.devices().ctxSynchronize(0);
    driver.close();

    assertThat(ring.calls()).extracting(TracedCall::result).containsExactly("void", "void");
    assertThat(ring.calls().getLast().call()).isEqualTo("close()");
    assertThat(tiny.closed).isTrue();
  }

  @Test
  void ring_keepsTheLastCallsAndCountsTheOthers() {
    for (int i = 0; i < 5; i++) {
      driver.devices().deviceGetCount();
    }

    assertThat(ring.calls()).extracting(TracedCall::sequence).containsExactly(4L, 5L);
    assertThat(ring.dropped()).isEqualTo(3);
  }

  /** Whoever looks into the ring leaves it to others. */
  @Test
  void ring_canBeReadByManyThreads() throws Exception {
    for (int i = 0; i < 2; i++) {
      assertThat(ring.calls()).isEmpty();
      assertThat(ring.dropped()).isZero();
      AtomicBoolean hasRead = new AtomicBoolean();
      Runnable reads = () -> hasRead.set(ring.calls().size() + ring.dropped() == 0);
      assertThat(Thread.ofPlatform().daemon().start(reads).join(Duration.ofSeconds(40))).isTrue();
      assertThat(hasRead).isTrue();
    }
  }

  @Test
  void name_saysWhatItTraces_andIsNoCall() {
    assertThat(driver.name()).isEqualTo("tracing(tiny)");
    assertThat(ring.calls()).isEmpty();
  }

  @Test
  void errorOfTheJvm_isToldToo() {
    CudaDriver small =
        DriverProxy.of((method, _) -> {
          if (method.getReturnType() == String.class) {
            return "small";
          }
          throw new OutOfMemoryError("heap");
        });
    CudaDriver traced = TracingDriver.of(small, ring);
    assertThatThrownBy(() -> traced.devices().ctxSynchronize(0))
        .isInstanceOf(OutOfMemoryError.class);
    assertThat(ring.calls()).singleElement().asString().contains("OutOfMemoryError");
  }

  @Test
  void failingConsumer_doesNotChangeTheCall_andIsHeard() throws Exception {
    AtomicReference<Throwable> heard = new AtomicReference<>();
    List<Long> addresses = new ArrayList<>();
    CudaDriver broken =
        TracingDriver.of(
            tiny.driver,
            _ -> {
              throw new IllegalStateException("full disk");
            });

    Thread thread = new Thread(() -> addresses.add(broken.memory().memAlloc(0, 1)));
    thread.setUncaughtExceptionHandler((_, e) -> heard.set(e));
    thread.start();
    thread.join();

    assertThat(addresses).hasSize(1);
    assertThat(heard.get()).hasMessage("full disk");
  }

  @Test
  void failingConsumerAndHandler_doNotChangeTheCall() throws Exception {
    List<Long> addresses = new ArrayList<>();
    CudaDriver broken =
        TracingDriver.of(
            tiny.driver,
            _ -> {
              throw new StackOverflowError("consumer");
            });

    Thread thread = new Thread(() -> addresses.add(broken.memory().memAlloc(0, 1)));
    thread.setUncaughtExceptionHandler((_, _) -> {
      throw new IllegalStateException("handler");
    });
    thread.start();
    thread.join();

    assertThat(addresses).hasSize(1);
  }

  @Test
  void emptyRing_isRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> new TraceRing(0))
        .withMessage("capacity: 0 (expected: >= 1)");
  }
}
