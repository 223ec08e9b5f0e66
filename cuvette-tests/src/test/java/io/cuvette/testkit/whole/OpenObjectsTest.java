package io.cuvette.testkit.whole;

import static io.cuvette.testkit.support.Sizes.UNEVEN;
import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.LeakLevel;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OpenObject;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

/** What is open, as {@link Cuda#openObjects} lists it. */
class OpenObjectsTest {

  @CudaTest
  void openObjects_areListedInTheirOrder_untilTheyAreClosed(Cuda cuda) {
    assertThat(cuda.openObjects()).isEmpty();
    CudaStream stream = cuda.device(0).createStream();
    CudaEvent event = stream.record();
    MemoryPool pool = new MemoryPool(cuda);
    Buffer direct = MemoryResource.direct().allocate(3000, stream);
    Buffer pooled = pool.allocate(UNEVEN, stream);
    assertThat(whats(cuda))
        .satisfiesExactly(
            what -> assertThat(what).contains("stream"),
            what -> assertThat(what).startsWith("event 0x"),
            what -> assertThat(what).startsWith("MemoryPool"),
            what -> assertThat(what).startsWith("buffer of 3000 bytes"),
            what -> assertThat(what).startsWith("buffer of 1024 bytes"),
            what -> assertThat(what).startsWith("buffer of 1000 bytes"));
    assertThat(cuda.openObjects().stream().mapToLong(OpenObject::bytes).sum())
        .isEqualTo(3000 + 2 * 1024);
    assertThat(cuda.openObjects())
        .allSatisfy(open ->
            assertThat(open.site().getStackTrace())
                .anyMatch(frame -> frame.getClassName().equals(getClass().getName())));
    pooled.close();
    direct.close();
    event.close();
    pool.close();
    stream.close();
    assertThat(cuda.openObjects()).isEmpty();
  }

  /** The first makes its pool grow; the next one is of memory that it has. */
  @CudaTest(simulatedOnly = true)
  void buffersOfEveryPool_areListed_alsoTheFirst(Cuda cuda) {
    try (MemoryPool pool = new MemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda);
        PinnedMemoryPool pinned = new PinnedMemoryPool(cuda)) {
      List<Supplier<Buffer>> kinds =
          List.of(
              () -> pool.allocate(UNEVEN),
              () -> elastic.allocate(UNEVEN),
              () -> pinned.allocate(UNEVEN));
      for (Supplier<Buffer> kind : kinds) {
        for (int i = 0; i < 2; i++) {
          Buffer buffer = kind.get();
          String listed = "buffer of %d bytes at 0x%x".formatted(UNEVEN, buffer.address());
          assertThat(whats(cuda)).filteredOn(what -> what.contains(listed)).hasSize(1);
          buffer.close();
          assertThat(whats(cuda)).noneMatch(what -> what.contains(listed));
        }
      }
    }
  }

  @CudaTest(tidy = false)
  void afterTheCudaIsClosed_nothingIsOpen(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    cuda.allocate(UNEVEN);
    cuda.allocatePinned(UNEVEN);
    cuda.device(0).createStream();
    cuda.close();
    assertThat(whats(cuda)).noneMatch(what -> what.contains("buffer") || what.contains("stream"));
  }

  @CudaTest
  void withoutSites_nothingIsKnown(Subject subject) {
    Cuda cuda = subject.open(options -> options.withLeakLevel(LeakLevel.COUNT));
    try (Buffer _ = cuda.allocate(UNEVEN)) {
      assertThat(cuda.openObjects()).isEmpty();
    }
  }

  @CudaTest
  void list_canBeReadWhileOthersOpenAndClose(Cuda cuda) throws Exception {
    AtomicBoolean stop = new AtomicBoolean();
    try (ExecutorService threads = Executors.newFixedThreadPool(3)) {
      List<Future<?>> running = new ArrayList<>();
      Callable<?> work =
          () -> {
            while (!stop.get()) {
              try (Buffer one = cuda.allocate(UNEVEN);
                  Buffer two = MemoryResource.async().allocate(UNEVEN, cuda.currentStream());
                  CudaEvent _ = cuda.currentStream().record()) {
                assertThat(one.address()).isNotEqualTo(two.address());
              }
            }
            return null;
          };
      for (int i = 0; i < 3; i++) {
        running.add(threads.submit(work));
      }
      try {
        for (int i = 0; i < 500; i++) {
          assertThat(cuda.openObjects()).allSatisfy(open -> assertThat(open.what()).isNotBlank());
        }
      } finally {
        stop.set(true);
      }
      for (Future<?> thread : running) {
        thread.get();
      }
    }
    cuda.defaultMemoryPool().freeAllBlocks();
    assertThat(cuda.openObjects()).isEmpty();
  }

  private static List<String> whats(Cuda cuda) {
    return cuda.openObjects().stream().map(OpenObject::what).toList();
  }

  /** What waits beside a stream that others may capture. */
  @CudaTest
  void streamsOfTheLibrary_areNobodysToClose(Cuda cuda) {
    try (CudaStream stream = cuda.device(0).createStream();
        Buffer buffer = cuda.allocate(UNEVEN, stream)) {
      List<OpenObject> before = cuda.openObjects();
      assertThat(stream.handle()).isNotZero(); // now others have it
      buffer.fill((byte) 1, stream);
      stream.synchronize();
      stream.addCallback(() -> {}).join();
      assertThat(cuda.openObjects()).hasSameSizeAs(before);
    }
  }

  private static long listedAt(Cuda cuda, long address) {
    String place = " at 0x%x".formatted(address);
    return whats(cuda).stream().filter(what -> (what + ",").contains(place + ",")).count();
  }

  /** Beside the memory that it is a part of, which may begin there as well. */
  @CudaTest
  void bufferOfEachKind_isListedOnce_untilItIsClosed(Cuda cuda) {
    for (Kind kind : Kind.values()) {
      Buffer buffer = kind.allocate(cuda, UNEVEN);
      long address = buffer.address();
      long listed = listedAt(cuda, address);
      Buffer wrapped = cuda.wrap(address, UNEVEN, buffer);
      assertThat(listedAt(cuda, address)).as("%s, whose owner closes it", kind).isEqualTo(listed);
      Buffer slice = buffer.slice(8);
      assertThat(listedAt(cuda, slice.address())).as("a slice").isZero();
      wrapped.close();
      Buffer adopted = cuda.device(0).adopt(address, UNEVEN, () -> {});
      assertThat(listedAt(cuda, address)).as("%s adopted", kind).isEqualTo(listed + 1);
      adopted.close();
      assertThat(listedAt(cuda, address)).as("%s", kind).isEqualTo(listed);
      buffer.close();
      assertThat(listedAt(cuda, address)).as("%s closed", kind).isEqualTo(listed - 1);
    }
    cuda.device(0).synchronize();
  }
}
