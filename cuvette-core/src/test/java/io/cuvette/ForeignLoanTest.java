package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.instrument.DriverProxy;
import io.cuvette.internal.base.Await;
import io.cuvette.internal.block.Memory;
import io.cuvette.internal.lifetime.ForeignUsers;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What code outside of Java gives back ends, each once, on a thread that is there for that. */
@Timeout(60)
class ForeignLoanTest {
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(40);
  private static final int MANY = 5;

  private static void awaitOver(ForeignLoan loan) {
    assertThat(Await.until(loan::isOver, PATIENCE_NANOS)).as("%s", loan).isTrue();
  }

  /** The threads that end what is given back: one, or none. */
  private static List<Thread> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().equals("cuvette-returns"))
        .toList();
  }

  private static void awaitState(Thread.State state) {
    assertThat(
            Await.until(
                () -> threads().stream().anyMatch(each -> each.getState() == state),
                PATIENCE_NANOS))
        .as("%s", state)
        .isTrue();
  }

  /** Which ends early then what it does before it ends, if there is nothing to do. */
  private static void wake() {
    threads().forEach(LockSupport::unpark);
  }

  @Test
  void whatIsGivenBackWhileAnotherEnds_endsAfterIt_inItsOrder() {
    CountDownLatch goOn = new CountDownLatch(1);
    Queue<Integer> ended = new ConcurrentLinkedQueue<>();
    List<ForeignLoan> loans = new ArrayList<>();
    ForeignLoan first = ForeignLoan.of(() -> Await.until(() -> goOn.getCount() == 0));
    for (int i = 0; i < MANY; i++) {
      int number = i;
      loans.add(ForeignLoan.of(() -> ended.add(number)));
    }
    first.giveBack();
    loans.forEach(ForeignLoan::giveBack);
    loans.getFirst().giveBack();
    assertThat(first.isOver()).isFalse();
    String out = first.toString();
    assertThat(ended).isEmpty();
    goOn.countDown();
    awaitOver(first);
    assertThat(out).endsWith(", out");
    assertThat(first.toString()).endsWith(", over");
    loans.forEach(ForeignLoanTest::awaitOver);
    assertThat(ended).containsExactly(0, 1, 2, 3, 4);
  }

  private static boolean isNoneThere() {
    wake();
    return threads().isEmpty();
  }

  /** Who lends something makes the thread here, which ends what others lend too. */
  @Test
  void threadThatEndsThem_inheritsNothing() {
    assertThat(Await.until(ForeignLoanTest::isNoneThere, PATIENCE_NANOS)).isTrue();
    InheritableThreadLocal<String> local = new InheritableThreadLocal<>();
    Queue<String> seen = new ConcurrentLinkedQueue<>();
    local.set("the caller's");
    try {
      ForeignLoan loan =
          ForeignLoan.of(() -> seen.add(Objects.requireNonNullElse(local.get(), "nothing")));
      loan.giveBack();
      awaitOver(loan);
    } finally {
      local.remove();
    }
    assertThat(seen).containsExactly("nothing");
  }

  @Test
  void loanOfMemory_namesIt() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        Buffer buffer = cuda.allocate(64)) {
      ForeignLoan loan = ForeignLoan.of(buffer);
      String out = loan.toString();
      loan.giveBack();
      awaitOver(loan);
      assertThat(out).isEqualTo("loan of %s, out", EngineMemory.of(buffer));
      assertThat(loan).hasToString("loan of %s, over", EngineMemory.of(buffer));
    }
    ForeignLoan other = ForeignLoan.of(() -> {});
    other.giveBack();
    awaitOver(other);
    assertThat(other).hasToString("loan, over");
  }

  @Test
  void threadSleepsWhileSomethingIsOut_andEndsWhatIsGivenBackThen() {
    ForeignLoan loan = ForeignLoan.of(() -> {});
    awaitState(Thread.State.WAITING);
    // One that ends may be there a moment longer.
    boolean _ = Await.until(() -> threads().size() < 2, PATIENCE_NANOS);
    assertThat(threads()).singleElement().matches(Thread::isDaemon, "no reason to go on");
    loan.giveBack();
    awaitOver(loan);
  }

  /** It is there a moment longer, and another one comes after it. */
  @Test
  void threadEndsWhenNothingIsOut_andTheNextLoanHasOneAgain() {
    AtomicInteger ended = new AtomicInteger();
    for (int i = 1; i <= 2; i++) {
      ForeignLoan loan = ForeignLoan.of(ended::incrementAndGet);
      loan.giveBack();
      awaitOver(loan);
      assertThat(
              Await.until(
                  () -> {
                    wake();
                    return threads().isEmpty();
                  },
                  PATIENCE_NANOS))
          .isTrue();
      assertThat(ended).hasValue(i);
    }
  }

  @Test
  void threadThatIsAboutToEnd_staysForTheLoanThatComesThen() {
    ForeignLoan before = ForeignLoan.of(() -> {});
    before.giveBack();
    awaitOver(before);
    Await.until(
        () -> threads().stream().allMatch(each -> each.getState() == Thread.State.TIMED_WAITING));
    ForeignLoan loan = ForeignLoan.of(() -> {});
    wake();
    awaitState(Thread.State.WAITING);
    loan.giveBack();
    awaitOver(loan);
  }

  /** Nobody here knows what streams used it: all that the device has is waited for. */
  @Test
  void memoryThatIsGivenBack_isFreedAfterTheWorkOfItsDevice() {
    Queue<String> calls = new ConcurrentLinkedQueue<>();
    try (Cuda cuda =
        Cuda.open(
            CudaOptions.simulated()
                .withDecorator(driver ->
                    DriverProxy.of((method, arguments) -> {
                      calls.add(method.getName());
                      return DriverProxy.forward(driver, method, arguments);
                    })))) {
      Buffer buffer = MemoryResource.direct().allocate(512, cuda.currentStream());
      ForeignLoan loan = ForeignLoan.of(buffer);
      buffer.close();
      calls.clear();
      loan.giveBack();
      awaitOver(loan);
      assertThat(calls.stream().filter(name -> name.startsWith("mem")))
          .as("the wait is for all work, as a free is")
          .containsExactly("memAlloc", "memFree", "memFree");
    }
  }

  /** Nobody else is there to be told, and the next end all the same. */
  @Test
  void loanWhoseEndFails_isOver_andTheHandlerOfUncaughtExceptionsIsTold() {
    Queue<Throwable> told = new ConcurrentLinkedQueue<>();
    Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
    Thread.setDefaultUncaughtExceptionHandler((_, failure) -> told.add(failure));
    try {
      List<Throwable> failures =
          List.of(new IllegalStateException("state"), new AssertionError("error"));
      ForeignLoan first = ForeignLoan.of(() -> fail((RuntimeException) failures.getFirst()));
      ForeignLoan second = ForeignLoan.of(() -> fail((Error) failures.getLast()));
      AtomicInteger ended = new AtomicInteger();
      ForeignLoan third = ForeignLoan.of(ended::incrementAndGet);
      List.of(first, second, third).forEach(ForeignLoan::giveBack);
      List.of(first, second, third).forEach(ForeignLoanTest::awaitOver);
      assertThat(told).containsExactlyElementsOf(failures);
      assertThat(ended).hasValue(1);
    } finally {
      Thread.setDefaultUncaughtExceptionHandler(before);
    }
  }

  private static void fail(RuntimeException failure) {
    throw failure;
  }

  private static void fail(Error failure) {
    throw failure;
  }

  /** Its Cuda waits for a loan that is out, and this one never was. */
  @Test
  void loanThatIsRefused_holdsNothing() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      Buffer closed = MemoryResource.direct().allocate(512, cuda.currentStream());
      Memory memory = BufferBase.base(closed).memory();
      closed.close();
      for (int i = 0; i < 3; i++) {
        assertThatThrownBy(() -> ForeignLoan.of(closed)).isInstanceOf(IllegalStateException.class);
      }
      assertThat(memory.block().holds()).isZero();
      assertThat(memory.block().lenders()).isZero();
      assertThat(cuda.session().foreignUsers().leaveEnd(() -> {})).as("any use is left").isFalse();
    }
    Cuda gone = Cuda.open(CudaOptions.simulated());
    Buffer buffer = MemoryResource.direct().allocate(512, gone.currentStream());
    gone.close();
    assertThatThrownBy(() -> ForeignLoan.of(buffer))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("closed");
  }

  /** Between that and its end it is neither out nor back. */
  @Test
  void memoryThatWasGivenBack_isOnItsWay_untilItsEnd() throws Exception {
    CountDownLatch goOn = new CountDownLatch(1);
    ForeignLoan first = ForeignLoan.of(() -> Await.until(() -> goOn.getCount() == 0));
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        Buffer buffer = MemoryResource.direct().allocate(512, cuda.currentStream())) {
      ForeignLoan loan = ForeignLoan.of(buffer);
      Thread idle = Thread.ofPlatform().start(cuda.session().foreignUsers()::awaitReturns);
      Await.until(() -> !idle.isAlive()); // what is out is not waited for
      first.giveBack();
      loan.giveBack();
      loan.giveBack();
      assertThat(Tries.oneSucceeds(() -> isAwaited(cuda.session().foreignUsers()))).isTrue();
      goOn.countDown();
      awaitOver(loan);
      cuda.session().foreignUsers().awaitReturns();
      assertThat(BufferBase.base(buffer).memory().block().holds()).isZero();
    }
  }

  /** Its bytes would stay with the pool else, which was asked for all of them. */
  @Test
  void poolThatIsToFreeAll_waitsForWhatIsOnItsWay() {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        MemoryPool pool = new MemoryPool(cuda);
        PinnedMemoryPool pinned = new PinnedMemoryPool(cuda)) {
      putOnItsWay(pool.allocate(512, cuda.currentStream()));
      assertThat(pool.freeAllBlocks()).isPositive();
      putOnItsWay(pinned.allocate(512));
      assertThat(pinned.freeAllBlocks()).isPositive();
    }
  }

  /** It comes back once this thread waits. */
  private static void putOnItsWay(Buffer buffer) {
    Thread here = Thread.currentThread();
    ForeignLoan loan = ForeignLoan.of(buffer);
    buffer.close();
    ForeignLoan.of(() -> Await.until(() -> here.getState() == Thread.State.TIMED_WAITING))
        .giveBack();
    loan.giveBack();
  }

  /** Whether a thread waits for what is on its way, as it does for a second. */
  private static boolean isAwaited(ForeignUsers users) {
    Thread thread = Thread.ofPlatform().start(users::awaitReturns);
    Await.until(() -> thread.getState() == Thread.State.TIMED_WAITING || !thread.isAlive());
    return thread.isAlive();
  }
}
