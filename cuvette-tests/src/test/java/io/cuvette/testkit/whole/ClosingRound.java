package io.cuvette.testkit.whole;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Threads that make, hand over and close things, until what these are from is closed. */
final class ClosingRound {
  private static final int THREADS = 6;
  private static final int MOST_STEPS = 400;
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  private final long seed;
  private final SimulatedDriver simulator = driver();
  private final ClosingDriver driver;
  private final Cuda cuda;
  private final Cuda peer = Cuda.open(CudaOptions.DEFAULTS.withDriver(driver()));
  private final List<CudaStream> streams;
  private final Contended.Source source;
  private final Queue<AutoCloseable> handedOver = new ConcurrentLinkedQueue<>();
  private final CountDownLatch started = new CountDownLatch(THREADS);
  private final CountDownLatch enough;
  private volatile boolean ending;
  private final List<String> wrong = new ArrayList<>();
  private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();

  ClosingRound(Contended what, long seed) {
    this.seed = seed;
    this.enough = new CountDownLatch(new SplittableRandom(seed).nextInt(MOST_STEPS / 2));
    this.driver = new ClosingDriver(simulator, seed);
    this.cuda =
        Cuda.open(CudaOptions.DEFAULTS.withDriver(simulator).withDecorator(_ -> driver.asDriver()));
    this.source = what.open(cuda, peer);
    this.streams =
        List.of(
            cuda.device(0).nullStream(),
            cuda.device(0).createStream(),
            cuda.device(0).createStream());
  }

  private static SimulatedDriver driver() {
    return SimulatedDriver.open(SimulatedOptions.parse("").withMemoryBytes(64L << 20));
  }

  /** What was wrong, one a line; empty if nothing was. */
  String closeCuda() {
    run(cuda::close);
    return findings();
  }

  /** The same for the owner of what is made, and then the Cuda. */
  String closeOwner() {
    run(this::endOwner);
    cuda.close();
    return findings();
  }

  private void endOwner() {
    AutoCloseable owner = source.owner();
    if (owner != null) {
      close(owner);
    }
  }

  private void run(Runnable end) {
    SplittableRandom random = new SplittableRandom(seed);
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < THREADS; i++) {
      SplittableRandom own = random.split();
      Runnable body = () -> work(own);
      threads.add(i % 2 == 0 ? Thread.ofPlatform().start(body) : Thread.ofVirtual().start(body));
    }
    try {
      started.await();
      if (!enough.await(PATIENCE.toSeconds(), TimeUnit.SECONDS)) {
        wrong.add("steps that are missing: " + enough.getCount());
      }
      ending = true;
      driver.endHere();
      end.run();
    } catch (RuntimeException | InterruptedException e) {
      failures.add(e);
    }
    threads.forEach(this::join);
    handedOver.forEach(this::close);
  }

  private void join(Thread thread) {
    try {
      if (!thread.join(PATIENCE)) {
        wrong.add("hangs: " + List.of(thread.getStackTrace()));
      }
    } catch (InterruptedException e) {
      failures.add(e);
    }
  }

  private void work(SplittableRandom random) {
    started.countDown();
    try {
      for (int i = 0; i < MOST_STEPS; i++) {
        enough.countDown();
        step(random);
      }
    } catch (IllegalStateException e) {
      if (!ending || !String.valueOf(e.getMessage()).contains("closed")) {
        failures.add(e);
      }
    } catch (Throwable e) {
      failures.add(e);
    }
  }

  private void step(SplittableRandom random) {
    if (random.nextInt(100) < 45) {
      CudaStream stream = streams.get(random.nextInt(streams.size()));
      AutoCloseable made = source.maker().make(512L * (1 + random.nextInt(4)), stream);
      if (made instanceof Buffer buffer && random.nextInt(3) == 0 && !buffer.stream().isClosed()) {
        CudaStream user = streams.get(random.nextInt(streams.size()));
        use(buffer, user, random);
      }
      handedOver.add(made);
    } else {
      AutoCloseable one = handedOver.poll();
      if (one != null) {
        close(one);
      }
    }
  }

  /** Work with a buffer that other threads do not know yet. */
  private static void use(Buffer buffer, CudaStream user, SplittableRandom random) {
    try {
      user.waitFor(buffer.stream());
      switch (random.nextInt(5)) {
        case 0 -> user.onComplete();
        case 1 -> buffer.recordUse(user);
        case 2 -> buffer.fill((byte) 1, user);
        case 3 -> buffer.copyFrom(MemorySegment.ofArray(new byte[8]));
        default -> user.record().close();
      }
    } catch (IllegalStateException e) {
      buffer.close(); // nobody else would
      throw e;
    }
  }

  private void close(AutoCloseable one) {
    try {
      one.close();
    } catch (Exception | AssertionError e) {
      failures.add(e);
    }
  }

  private String findings() {
    peer.close();
    for (Throwable failure : failures) {
      wrong.add(text(failure));
    }
    driver.late().forEach(call -> wrong.add("late: " + call));
    if (!simulator.report().isEmpty()) {
      wrong.add("left: " + simulator.report());
    }
    return String.join("\n", wrong);
  }

  private static String text(@Nullable Throwable failure) {
    StringBuilder text = new StringBuilder(String.valueOf(failure));
    if (failure != null) {
      for (int i = 0; i < Math.min(12, failure.getStackTrace().length); i++) {
        text.append("\n    at ").append(failure.getStackTrace()[i]);
      }
    }
    return text.toString();
  }
}
