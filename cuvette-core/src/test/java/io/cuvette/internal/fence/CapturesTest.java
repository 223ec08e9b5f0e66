package io.cuvette.internal.fence;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.UserObject;
import io.cuvette.instrument.DriverProxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** What the driver is asked of captures, and what comes after work. */
class CapturesTest {
  private final List<String> calls = new ArrayList<>();
  private final AtomicBoolean destroyed = new AtomicBoolean();

  /** What the stream takes part in. */
  private CaptureInfo now = CaptureInfo.of(0, 0, 0);

  private final Captures captures = new Captures(driver());
  private final OwnCapture own = new OwnCapture();

  /** What the driver does next in a call of a name. */
  private final Map<String, Runnable> during = new HashMap<>();

  private final ReentrantLock ends = new ReentrantLock();

  private CudaDriver driver() {
    return DriverProxy.of((method, _) -> {
      String name = method.getName();
      calls.add(name);
      Runnable next = during.remove(name);
      if (next != null) {
        next.run();
      }
      return switch (name) {
        case "streamIsCapturing" -> now.status();
        case "streamGetCaptureInfo" -> now;
        case "userObjectCreate" -> new UserObject(5, destroyed::get);
        default -> null;
      };
    });
  }

  private @Nullable Capture ask() {
    calls.clear();
    try {
      return captures.of(0, 1, own, ends);
    } finally {
      assertThat(ends.isLocked()).as("others may end theirs").isFalse();
    }
  }

  private static Runnable failing(CudaStatus status) {
    return () -> {
      throw new CudaException(status, "call", "the test's");
    };
  }

  /** The one that is enough as long as nothing changes. */
  @Test
  void streamIsAskedOneQuestion_butForTheFirstAfterAChange() {
    CaptureInfo none = now;
    for (int round = 0; round < 2; round++) {
      now = none;
      for (int i = 0; i < 3; i++) {
        assertThat(ask()).isNull();
        boolean isNews = round > 0 && i == 0;
        assertThat(calls).containsExactly(isNews ? "streamGetCaptureInfo" : "streamIsCapturing");
      }
      now = CaptureInfo.of(1, 7 + round, 8);
      Capture capture = Objects.requireNonNull(ask());
      assertThat(calls).startsWith("streamIsCapturing", "streamGetCaptureInfo");
      for (int i = 0; i < 3; i++) {
        assertThat(ask()).isSameAs(capture);
        assertThat(calls).containsExactly("streamGetCaptureInfo");
      }
    }
  }

  /** Nothing that it has is for a graph: what was captured never runs. */
  @Test
  void invalidCapture_isNone_andNoNewsEither() {
    now = CaptureInfo.of(2, 7, 8);
    for (int i = 0; i < 3; i++) {
      assertThat(ask()).isNull();
    }
    assertThat(calls).doesNotContain("streamIsCapturing", "userObjectCreate");
  }

  @Test
  void captureOfTheLibraryThatBecomesInvalid_isNoneFromThenOn() {
    now = CaptureInfo.of(1, 7, 8);
    Capture begun = captures.begun(0, 1, null);
    assertThat(ask()).isSameAs(begun);
    now = CaptureInfo.of(2, 7, 8);
    for (int i = 0; i < 3; i++) {
      assertThat(ask()).isNull();
    }
  }

  private static final class Work implements Fence {
    private @Nullable CudaException failure;
    private boolean done;
    private int questions;

    @Override
    public boolean isDone() {
      questions++;
      if (failure != null) {
        throw failure;
      }
      return done;
    }

    @Override
    public void await() {}
  }

  /** What has come is not asked for again. */
  @Test
  void stepAfterWork_isTakenOnceThatIsDone_andOnce() {
    List<String> taken = new ArrayList<>();
    Work first = new Work();
    Work second = new Work();
    captures.after(first, () -> taken.add("first"));
    captures.after(second, () -> taken.add("second"));
    captures.poll();
    assertThat(taken).isEmpty();
    second.done = true;
    captures.poll();
    assertThat(taken).containsExactly("second");
    int asked = second.questions;
    captures.poll();
    captures.poll();
    assertThat(second.questions).isEqualTo(asked);
    first.done = true;
    captures.poll();
    captures.poll();
    assertThat(taken).containsExactly("second", "first");
  }

  @Test
  void stepThatLooksForOthers_isNotTakenAgain() {
    List<String> taken = new ArrayList<>();
    Work work = new Work();
    work.done = true;
    captures.after(
        work,
        () -> {
          taken.add("step");
          captures.poll();
        });
    captures.poll();
    assertThat(taken).containsExactly("step");
  }

  /** It is no news the second time, and no end of the work. */
  @Test
  void workThatCannotBeAsked_isToldOnce_andItsStepWaits() {
    List<String> taken = new ArrayList<>();
    Work work = new Work();
    work.failure = new CudaException(CudaStatus.ILLEGAL_ADDRESS, "cuEventQuery", "the test's");
    captures.after(work, () -> taken.add("step"));
    assertThatThrownBy(captures::poll).isSameAs(work.failure);
    for (int i = 0; i < 3; i++) {
      captures.poll();
    }
    assertThat(taken).isEmpty();
    work.failure = null;
    captures.poll();
    assertThat(taken).as("it goes on").isEmpty();
    work.done = true;
    captures.poll();
    assertThat(taken).containsExactly("step");
  }

  /** The library does not end such a graph: nobody but the next look lets go. */
  @Test
  void graphOfSomebodyElseThatIsGone_keepsNothingMore() {
    now = CaptureInfo.of(1, 7, 8);
    Capture capture = Objects.requireNonNull(ask());
    List<String> ended = new ArrayList<>();
    Retainable held =
        new Retainable() {
          @Override
          public void retain() {}

          @Override
          public void letGo() {
            ended.add("held");
          }
        };
    capture.hold(held);
    captures.poll();
    assertThat(ended).isEmpty();
    assertThat(ask()).isSameAs(capture);
    destroyed.set(true);
    captures.poll();
    assertThat(ended).containsExactly("held");
    captures.poll();
    assertThat(ended).hasSize(1);
    destroyed.set(false);
    assertThat(ask()).as("its number is another's").isNotSameAs(capture);
  }

  @Test
  void captureOfTheLibrary_isTheOneThatItsStreamTakesPartIn_untilItsGraphIsGone() {
    CaptureMemory memory = CaptureMemory.ofSeveral("owner");
    for (CaptureMemory given : new CaptureMemory[] {memory, CaptureMemory.ofOne()}) {
      now = CaptureInfo.of(1, given == memory ? 11 : 12, 8);
      Capture begun = captures.begun(0, 1, given == memory ? memory : null);
      assertThat(begun.id).isEqualTo(now.id());
      assertThat(begun.memory == memory).isEqualTo(given == memory);
      assertThat(ask()).isSameAs(begun);
      assertThat(calls).as("it knows the end itself").doesNotContain("userObjectCreate");
      captures.poll();
      assertThat(ask()).isSameAs(begun);
      begun.letGo();
      captures.poll();
      assertThat(ask()).as("another's with its number").isNotSameAs(begun);
    }
  }

  /** Its graph would be gone between a look at it and the call. */
  @Test
  void graphOfSomebodyElse_isRetained_whileNobodyEndsItsCapture() {
    now = CaptureInfo.of(1, 7, 8);
    List<Boolean> held = new ArrayList<>();
    during.put("graphRetainUserObject", () -> held.add(ends.isHeldByCurrentThread()));
    assertThat(ask()).isNotNull();
    assertThat(held).containsExactly(true);
    assertThat(calls).endsWith("userObjectCreate", "graphRetainUserObject");
  }

  @Test
  void captureThatIsOverWhenItIsLookedAt_isNone() {
    for (int status : new int[] {0, 2}) {
      now = CaptureInfo.of(1, 7, 8);
      own.wasCaptured = true;
      during.put(
          "streamGetCaptureInfo",
          () -> during.put("streamGetCaptureInfo", () -> now = CaptureInfo.of(status, 0, 0)));
      assertThat(ask()).isNull();
      assertThat(calls).doesNotContain("userObjectCreate");
    }
  }

  /** Memory is not used in it, and the end of what was made is known. */
  @Test
  void graphThatTheDriverDoesNotRetainFor_isRefused_unlessItsCaptureIsOver() {
    long id = 0;
    for (CudaStatus status : CudaStatus.values()) {
      boolean mayBeDone = status.losesContext() || status.name().endsWith("NOT_REGISTERED");
      for (String call : List.of("userObjectCreate", "graphRetainUserObject")) {
        now = CaptureInfo.of(1, ++id, 8);
        during.put(call, failing(status));
        Capture refused = Objects.requireNonNull(ask());
        assertThatThrownBy(() -> refused.checked("use", "stream")).hasMessageContaining("use");
        assertThat(refused.isDone()).isFalse();
        assertThat(calls.contains("userObjectRelease"))
            .as("%s of %s", status, call)
            .isEqualTo(call.equals("graphRetainUserObject") && !mayBeDone);
        assertThat(ask()).as("the next time it may work").isNotSameAs(refused);
        now = CaptureInfo.of(1, ++id, 8);
        CaptureInfo next = CaptureInfo.of(1, ++id, 9);
        during.put(
            call,
            () -> {
              now = next;
              failing(status).run();
            });
        Capture other = Objects.requireNonNull(ask());
        assertThat(other.id).as("that of the next").isEqualTo(next.id());
        assertThat(other.checked("use", "stream")).isSameAs(other);
        now = CaptureInfo.of(1, ++id, 8);
        during.put(
            call,
            () -> {
              now = CaptureInfo.of(0, 0, 0);
              failing(status).run();
            });
        assertThat(ask()).isNull();
      }
    }
  }

  /** No invalid capture has a number, so that one cannot be told from another. */
  @Test
  void captureThatIsInvalidAtOnce_isNotTakenForThatOfAnotherStream() {
    now = CaptureInfo.of(2, 0, 0);
    Capture begun = captures.begun(0, 1, null);
    assertThat(ask()).isNull();
    now = CaptureInfo.of(1, 7, 8);
    assertThat(ask()).isNotNull().isNotSameAs(begun);
    begun.letGo();
  }

  @Test
  void captureThatTwoThreadsFindAtOnce_isOne() {
    now = CaptureInfo.of(1, 7, 8);
    List<Capture> found = new ArrayList<>();
    during.put(
        "graphRetainUserObject",
        () -> found.add(Objects.requireNonNull(captures.of(0, 2, new OwnCapture(), ends))));
    found.add(Objects.requireNonNull(ask()));
    assertThat(found).hasSize(2).containsOnly(found.getFirst());
    assertThat(ask()).isSameAs(found.getFirst());
  }

  @Test
  void refusalForACapture_isOneOfTheDriver_withAStatusOfCaptures() {
    for (CudaStatus status : CudaStatus.values()) {
      assertThat(WorkMarker.isOfCapture(new CudaException(status, "call", "the test's")))
          .as(status.name())
          .isEqualTo(status.code() >= 900 && status.code() <= 908);
    }
    assertThat(WorkMarker.isOfCapture(new IllegalStateException())).isFalse();
  }
}
