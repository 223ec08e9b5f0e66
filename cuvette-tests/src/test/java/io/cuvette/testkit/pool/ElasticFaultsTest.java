package io.cuvette.testkit.pool;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.ElasticPoolOptions;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLimit;
import io.cuvette.Registration;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import io.cuvette.testkit.DriverCall;
import io.cuvette.testkit.Hold;
import io.cuvette.testkit.ScriptedDriver;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * One call of virtual memory fails, each in turn, and the pool goes on: its books are right, and
 * the limit, the device's memory and the addresses are there as if the call had not been made.
 */
@Tag("simulated")
@Timeout(300)
class ElasticFaultsTest {
  private static final long MIB = 1L << 20;
  private static final long LIMIT = 16 * MIB;

  /** What a call fails with; the last ones may be of earlier work, and it was done all the same. */
  private static final List<CudaStatus> STATUSES =
      List.of(CudaStatus.OUT_OF_MEMORY, CudaStatus.INVALID_VALUE, CudaStatus.ILLEGAL_ADDRESS);

  private final AtomicInteger calls = new AtomicInteger();

  @ParameterizedTest
  @ValueSource(strings = {"memCreate", "memMap", "memSetAccess", "memRelease", "memUnmap"})
  void poolGoesOn_afterACallThatFailed(String call) {
    int failed = 0;
    for (CudaStatus status : STATUSES) {
      for (int number = 1; run(call, number, status); number++) {
        failed++;
      }
    }
    assertThat(failed).isGreaterThanOrEqualTo(2 * STATUSES.size());
  }

  /** False if there is no such call. */
  private boolean run(String name, int number, CudaStatus status) {
    ScriptedDriver script = new ScriptedDriver();
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(LIMIT));
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        CudaStream stream = cuda.device(0).createStream();
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options)) {
      long before = cuda.device(0).memoryInfo().freeBytes();
      calls.set(0);
      script.answer(name, call -> answer(call, number, status));
      use(pool, stream);
      use(pool, stream);
      script.unscript(name);
      stream.synchronize();
      assertWhole(pool, stream, "%s %d: %s".formatted(name, number, status));
      assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(before);
    }
    return calls.get() >= number;
  }

  /** What was mapped for a block that a hook refuses goes back at once, or with the next trim. */
  @Test
  void memoryMappedInVain_goesBack_alsoIfThatFailsAtFirst() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        CudaStream stream = cuda.device(0).createStream();
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      long before = cuda.device(0).memoryInfo().freeBytes();
      Registration refusing = pool.addHook(new Refusing());
      assertThatThrownBy(() -> pool.allocate(5 * MIB, stream)).hasMessage("on purpose");
      assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(before);
      script.fail("memUnmap", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(() -> pool.allocate(5 * MIB, stream)).hasMessage("on purpose");
      assertThat(cuda.device(0).memoryInfo().freeBytes()).isLessThan(before);
      pool.trim(0);
      assertThat(cuda.device(0).memoryInfo().freeBytes()).isEqualTo(before);
      refusing.close();
      assertWhole(pool, stream, "a hook");
    }
  }

  @Test
  void memoryThatCannotBeUnmapped_isFreeAgain() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        CudaStream stream = cuda.device(0).createStream();
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      pool.allocate(5 * MIB, stream).close();
      stream.synchronize();
      long free = pool.freeBytes();
      script.fail("memUnmap", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(() -> pool.trim(0)).hasMessageContaining("scripted by the test");
      assertThat(pool.freeBytes()).isEqualTo(free);
      pool.assertConsistent();
      assertThat(pool.trim(0)).isEqualTo(free);
      pool.assertConsistent();
    }
  }

  /** What a test does with a pool that has two free places of 8 MiB, and a used one between. */
  @FunctionalInterface
  private interface Places {
    void use(ScriptedDriver script, ElasticMemoryPool pool, CudaStream stream);
  }

  private static void withTwoFreePlaces(Places places) {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        CudaStream stream = cuda.device(0).createStream();
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      Buffer first = pool.allocate(8 * MIB, stream);
      try (Buffer _ = pool.allocate(8 * MIB, stream)) {
        pool.allocate(8 * MIB, stream).close();
        first.close();
        stream.synchronize();
        places.use(script, pool, stream);
      }
    }
  }

  /** Also where more than one place is released, and only the first of them fails. */
  @Test
  void memoryBesideSomeThatCannotBeUnmapped_isReleased() {
    withTwoFreePlaces((script, pool, stream) -> {
      script.fail("memUnmap", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(() -> pool.trim(0)).hasMessageContaining("scripted by the test");
      assertThat(pool.freeBytes()).isEqualTo(8 * MIB);
      pool.assertConsistent();
      pool.allocate(16 * MIB, stream).close();
      stream.synchronize();
      assertThat(pool.trim(0)).isPositive();
      assertThat(pool.totalBytes()).isEqualTo(8 * MIB);
      pool.assertConsistent();
    });
  }

  /** Each has a reason of its own. */
  @Test
  void placesThatCannotBeUnmapped_areAllTold() {
    withTwoFreePlaces((script, pool, stream) -> {
      AtomicInteger refused = new AtomicInteger();
      script.answer(
          "memUnmap",
          call -> {
            String text = "refusal " + refused.incrementAndGet();
            throw new CudaException(CudaStatus.INVALID_VALUE, call.name(), text);
          });
      assertThatThrownBy(() -> pool.trim(0))
          .hasMessageContaining("refusal 1")
          .satisfies(e ->
              assertThat(e.getSuppressed())
                  .singleElement(InstanceOfAssertFactories.THROWABLE)
                  .hasMessageContaining("refusal 2"));
      script.unscript("memUnmap");
      assertThat(pool.freeBytes()).isEqualTo(16 * MIB);
      pool.assertConsistent();
    });
  }

  /** Nothing of what was to be mapped is counted yet. */
  @Test
  void memoryThatCannotBeMoved_leavesTheBooksRight() {
    ScriptedDriver script = new ScriptedDriver();
    ElasticPoolOptions options = ElasticPoolOptions.DEFAULTS.withLimit(MemoryLimit.ofBytes(LIMIT));
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        CudaStream stream = cuda.device(0).createStream();
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda, options)) {
      Buffer first = pool.allocate(6 * MIB, stream);
      Buffer between = pool.allocate(4 * MIB, stream);
      pool.allocate(6 * MIB, stream).close();
      first.close();
      stream.synchronize();
      script.fail("memUnmap", CudaStatus.INVALID_VALUE, 1);
      assertThatThrownBy(() -> pool.allocate(12 * MIB, stream))
          .hasMessageContaining("scripted by the test");
      assertThat(pool.totalBytes()).isEqualTo(LIMIT);
      assertThat(pool.freeBytes()).isEqualTo(12 * MIB);
      pool.assertConsistent();
      try (Buffer _ = pool.allocate(12 * MIB, stream)) {
        assertThat(pool.totalBytes()).isEqualTo(LIMIT);
        pool.assertConsistent();
      }
      between.close();
      stream.synchronize();
      assertWhole(pool, stream, "a move");
    }
  }

  /** What is cached elsewhere stays, as far as the pool once had more in use. */
  @Test
  void memoryIsMovedOnly_asFarAsThereIsNoRoom() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        CudaStream stream = cuda.device(0).createStream();
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      pool.allocate(64 * MIB, stream).close();
      stream.synchronize();
      pool.trim(0);
      Buffer first = pool.allocate(8 * MIB, stream);
      try (Buffer _ = pool.allocate(4 * MIB, stream)) {
        first.close();
        stream.synchronize();
        long unmapped = script.count("memUnmap");
        try (Buffer _ = pool.allocate(16 * MIB, stream)) {
          assertThat(script.count("memUnmap")).isEqualTo(unmapped);
          assertThat(pool.freeBytes()).isEqualTo(8 * MIB);
          assertThat(pool.totalBytes()).isEqualTo(28 * MIB);
        }
      }
    }
  }

  /** The addresses of memory that is still mapped are nobody else's. */
  @Test
  void addressesOfMemoryThatCannotBeUnmapped_areKeptUntilItIs() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over))) {
      ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
      script.fail("memSetAccess", CudaStatus.NOT_PERMITTED);
      script.fail("memUnmap", CudaStatus.NOT_PERMITTED);
      assertThatThrownBy(() -> pool.allocate(5 * MIB))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("memSetAccess")
          .satisfies(e ->
              assertThat(e.getSuppressed())
                  .as("at once, and when the block is given up")
                  .hasSize(2)
                  .allSatisfy(each -> assertThat(each).hasMessageContaining("memUnmap")));
      script.note("memAddressFree");
      assertThatThrownBy(pool::close).isInstanceOf(CudaException.class);
      assertThat(script.notes()).isEmpty();
      script.unscript("memUnmap");
    }
    assertThat(script.notes()).hasSize(1);
  }

  @Test
  void memoryInUse_isUnmappedWithTheCuda_alsoIfAPartCannotBe() {
    ScriptedDriver script = new ScriptedDriver();
    Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
    ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
    long first = pool.allocate(2 * MIB).address();
    Buffer _ = pool.allocate(2 * MIB);
    Buffer _ = pool.allocate(2 * MIB);
    script.answer(
        "memUnmap",
        call -> {
          if (call.number("address") == first) {
            throw new CudaException(CudaStatus.NOT_PERMITTED, call.name(), "scripted by the test");
          }
          return call.proceed();
        });
    assertThatThrownBy(cuda::close).hasMessageContaining("scripted by the test");
    assertThat(script.count("memUnmap")).isEqualTo(2);
  }

  /** Whoever closes it cannot end it, as a part is on its way. */
  @Test
  void poolThatIsClosedWhileItIsTrimmed_endsWithThat() throws InterruptedException {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        CudaStream stream = cuda.device(0).createStream();
        Hold hold = script.hold("memUnmap")) {
      ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
      pool.allocate(5 * MIB, stream).close();
      stream.synchronize();
      Thread trimming = Thread.ofPlatform().start(() -> pool.trim(0));
      hold.awaitBegun();
      pool.close();
      assertThat(script.count("memAddressFree")).isZero();
      hold.release();
      trimming.join();
      assertThat(script.count("memAddressFree")).isOne();
    }
  }

  private static final class Refusing implements MemoryHook {
    @Override
    public void allocPostprocess(Growth growth) {
      throw new IllegalStateException("on purpose");
    }
  }

  private @Nullable Object answer(DriverCall call, int number, CudaStatus status) throws Throwable {
    if (calls.incrementAndGet() != number) {
      return call.proceed();
    }
    if (status.losesContext() && !call.name().equals("memCreate")) { // whose memory nobody has
      Object _ = call.proceed();
    }
    throw new CudaException(status, call.name(), "on purpose");
  }

  /** Maps, moves what other blocks leave, and unmaps. */
  private static void use(ElasticMemoryPool pool, CudaStream stream) {
    trying(() -> {
      try (Buffer _ = pool.allocate(5 * MIB, stream);
          Buffer _ = pool.allocate(700, stream);
          Buffer between = pool.allocate(3 * MIB, stream)) {
        trying(() -> pool.allocate(5 * MIB, stream).close());
        between.fill((byte) 1, stream);
      }
    });
    stream.synchronize();
    trying(() -> pool.allocate(12 * MIB, stream).close());
    stream.synchronize();
    trying(() -> pool.trim(4 * MIB));
    trying(() -> pool.trim(0));
  }

  private static void trying(Runnable step) {
    try {
      step.run();
    } catch (CudaException e) {
      // of the call that failed
    }
  }

  private static void assertWhole(ElasticMemoryPool pool, CudaStream stream, String after) {
    pool.assertConsistent();
    assertThat(pool.usedBytes()).as(after).isZero();
    for (int i = 0; i < 2; i++) {
      pool.freeAllBlocks();
      assertThat(pool.totalBytes()).as(after).isZero();
      assertThat(pool.pages().pieces()).as(after).isZero();
      pool.allocate(LIMIT, stream).close();
      stream.synchronize();
      pool.assertConsistent();
    }
    pool.freeAllBlocks();
  }

  /** Pools that the program has forgotten may have had them. */
  @Test
  void addressesThatAreRefused_areAskedForOnceMore_afterACollection() {
    ScriptedDriver script = new ScriptedDriver();
    try (Cuda cuda = Cuda.open(CudaOptions.simulated().withDecorator(script::over));
        ElasticMemoryPool pool = new ElasticMemoryPool(cuda)) {
      for (CudaStatus status : List.of(CudaStatus.INVALID_VALUE, CudaStatus.OUT_OF_MEMORY)) {
        AtomicInteger asked = new AtomicInteger();
        script.answer(
            "memAddressReserve",
            call -> {
              if (asked.incrementAndGet() == 1) {
                throw new CudaException(status, call.name(), "scripted by the test");
              }
              return call.proceed();
            });
        if (status == CudaStatus.OUT_OF_MEMORY) {
          pool.allocate(MIB).close();
          assertThat(asked).hasValue(2);
        } else {
          assertThatThrownBy(() -> pool.allocate(MIB)).isInstanceOf(CudaException.class);
          assertThat(asked).hasValue(1);
        }
      }
    }
  }
}
