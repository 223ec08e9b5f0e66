package io.cuvette.ffm;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.StreamOptions;
import io.cuvette.driver.CudaDriver;
import io.cuvette.ffm.RaceMain.Race;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Programs that end something while other threads use it, each of one round. The last four end the
 * JVM, so that each JVM of {@link RacesTest} has one of them, its last.
 */
enum RaceProgram {
  CUDA_CLOSED_BESIDE_HEAP_COPIES {
    @Override
    void round(Race race) throws Exception {
      Cuda cuda = RaceMain.open();
      Buffer buffer = cuda.allocate(BYTES);
      MemorySegment in = heap();
      MemorySegment out = heap();
      race.run(
          RaceMain.untilClosed(() -> buffer.copyFrom(in)),
          RaceMain.untilClosed(() -> buffer.copyTo(out)),
          cuda::close);
    }
  },
  CUDA_CLOSED_BESIDE_NATIVE_COPIES {
    @Override
    void round(Race race) throws Exception {
      Cuda cuda = RaceMain.open();
      Buffer buffer = cuda.allocate(BYTES);
      PinnedBuffer pinned = cuda.allocatePinned(BYTES);
      MemorySegment heap = heap();
      try (Arena arena = Arena.ofShared()) {
        MemorySegment memory = arena.allocate(BYTES);
        race.run(
            RaceMain.untilClosed(() -> buffer.copyFrom(memory)),
            RaceMain.untilClosed(() -> pinned.copyTo(heap)),
            RaceMain.untilClosed(() -> buffer.copyTo(pinned)),
            cuda::close);
      }
    }
  },
  BUFFER_CLOSED_BESIDE_ITS_USE {
    @Override
    void round(Race race) throws Exception {
      try (Cuda cuda = RaceMain.open()) {
        CudaStream stream = cuda.device(0).nullStream();
        Buffer buffer = MemoryResource.direct().allocate(BYTES, stream);
        Buffer other = MemoryResource.direct().allocate(BYTES, stream);
        MemorySegment heap = heap();
        race.run(
            RaceMain.untilClosed(() -> buffer.copyFrom(heap)),
            RaceMain.untilClosed(() -> buffer.fill((byte) 1)),
            RaceMain.untilClosed(() -> other.copyFrom(buffer, stream)),
            buffer::close);
      }
    }
  },
  PINNED_BUFFER_CLOSED_BESIDE_ITS_USE {
    @Override
    void round(Race race) throws Exception {
      try (Cuda cuda = RaceMain.open()) {
        Buffer device = cuda.allocate(BYTES);
        PinnedBuffer pinned = cuda.directPinned().allocate(BYTES);
        MemorySegment heap = heap();
        race.run(
            RaceMain.untilClosed(() -> pinned.copyFrom(heap)),
            RaceMain.untilClosed(() -> device.copyFrom(pinned)),
            RaceMain.untilClosed(() -> pinned.segment().fill((byte) 3)),
            pinned::close);
      }
    }
  },
  STREAM_CLOSED_BESIDE_ITS_USE {
    @Override
    void round(Race race) throws Exception {
      try (Cuda cuda = RaceMain.open()) {
        CudaStream stream = cuda.device(0).createStream();
        CudaEvent event = cuda.device(0).createEvent();
        Buffer buffer = cuda.allocate(BYTES, cuda.device(0).nullStream());
        race.run(
            RaceMain.untilClosed(() -> buffer.fill((byte) 1, stream)),
            RaceMain.untilClosed(() -> stream.record(event)),
            RaceMain.untilClosed(stream::synchronize),
            stream::close);
      }
    }
  },
  EVENT_CLOSED_BESIDE_ITS_USE {
    @Override
    void round(Race race) throws Exception {
      try (Cuda cuda = RaceMain.open()) {
        CudaStream stream = cuda.device(0).createStream();
        CudaEvent event = cuda.device(0).createEvent();
        race.run(
            RaceMain.untilClosed(() -> event.record(stream)),
            RaceMain.untilClosed(() -> stream.waitFor(event)),
            RaceMain.untilClosed(event::synchronize),
            event::close);
      }
    }
  },
  POOLS_CLOSED_BESIDE_THEIR_USE {
    @Override
    void round(Race race) throws Exception {
      try (Cuda cuda = RaceMain.open()) {
        MemoryPool pool = new MemoryPool(cuda);
        AsyncMemoryPool async = new AsyncMemoryPool(cuda);
        Buffer target = cuda.allocate(BYTES);
        MemorySegment heap = heap();
        PinnedMemoryPool pinned = new PinnedMemoryPool(cuda);
        cuda.setPinnedAllocator(pinned);
        race.run(
            RaceMain.untilClosed(() -> use(pool.allocate(BYTES))),
            RaceMain.untilClosed(() -> use(async.allocate(BYTES))),
            RaceMain.untilClosed(() -> target.copyFrom(heap)), // through the pinned pool
            () -> {
              pool.close();
              async.close();
              pinned.close();
            });
        cuda.setPinnedAllocator(cuda.defaultPinnedMemoryPool());
      }
    }
  },
  CALLBACKS_BESIDE_THE_END {
    @Override
    void round(Race race) throws Exception {
      Cuda cuda = RaceMain.open();
      CudaStream stream = cuda.device(0).createStream();
      race.run(
          RaceMain.untilClosed(() -> finish(stream.addCallback(() -> {}))),
          RaceMain.untilClosed(() -> finish(stream.onComplete())),
          stream::close,
          cuda::close);
    }
  },
  CALLBACKS_THAT_CALL_CUDA_BESIDE_FREES {
    @Override
    void round(Race race) throws Exception {
      Cuda cuda = RaceMain.open();
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      Buffer result = cuda.allocate(BYTES, stream);
      PinnedBuffer host = cuda.allocatePinned(BYTES);
      Runnable inside =
          () -> {
            use(MemoryResource.direct().allocate(BYTES, cuda.currentStream()));
            cuda.directPinned().allocate(BYTES).close();
            cuda.currentStream().synchronize();
          };
      race.run(
          RaceMain.untilClosed(() -> {
            result.fill((byte) 1, stream);
            host.copyFrom(result, stream);
            finish(stream.addCallback(inside));
          }),
          RaceMain.untilClosed(() -> use(MemoryResource.direct().allocate(BYTES, stream))),
          RaceMain.untilClosed(() -> cuda.directPinned().allocate(BYTES).close()),
          RaceMain.untilClosed(() -> cuda.device(0).synchronize()),
          () -> {
            // Each waits for its turn behind what the others queue: more took half of all programs.
            for (int i = 0; i < 5; i++) {
              finish(stream.addCallback(inside));
            }
            cuda.close();
          });
    }
  },
  COLLECTOR_BESIDE_THE_LAST_USE {
    @Override
    void round(Race race) throws Exception {
      try (Cuda cuda = RaceMain.open()) {
        MemorySegment heap = heap();
        for (int i = 0;
            i < 300;
            i++) { // compiled code keeps nothing reachable that it needs no more
          copyOutOfForgotten(cuda, heap.asSlice(0, 8));
        }
        CountDownLatch collected = new CountDownLatch(1);
        cuda.driver().streams().launchHostFunc(0, 0, () -> await(collected));
        race.run(
            () -> copyOutOfForgotten(cuda, heap), // waits for the stream, then copies
            () -> {
              System.gc();
              collected.countDown();
              cuda.leaksFound();
            },
            () -> {
              await(collected);
              cuda.leaksFound();
            });
      }
    }
  },
  ARENA_CLOSED_BESIDE_A_COPY {
    @Override
    void round(Race race) throws Exception {
      try (Cuda cuda = RaceMain.open()) {
        Buffer buffer = cuda.allocate(BYTES);
        CudaStream stream = cuda.device(0).nullStream();
        Arena arena = Arena.ofShared();
        MemorySegment memory = arena.allocate(BYTES);
        race.run(
            RaceMain.untilClosed(() -> buffer.copyFrom(memory)),
            RaceMain.untilClosed(() -> buffer.copyTo(memory, stream)),
            () -> close(arena));
      }
    }
  },
  CUDA_CLOSED_BESIDE_CAPTURES {
    @Override
    void round(Race race) throws Exception {
      try (Cuda others = RaceMain.open()) {
        Cuda cuda = RaceMain.open();
        CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
        MemorySegment heap = heap();
        CountDownLatch over = new CountDownLatch(1);
        race.run(
            () -> captureUntil(others.driver(), over),
            RaceMain.untilClosed(() -> use(cuda.allocate(BYTES, stream))),
            RaceMain.untilClosed(() -> useOnce(cuda, stream)),
            RaceMain.untilClosed(() -> copyOutOfForgotten(cuda, heap)),
            RaceMain.untilClosed(() -> release(cuda)),
            () -> {
              cuda.close();
              over.countDown();
            });
      }
    }
  },
  EXIT_WITH_A_GRAPH {
    @Override
    void round(Race race) {
      Cuda cuda = RaceMain.open();
      CudaDriver driver = cuda.driver();
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      driver.captures().streamBeginCapture(0, stream.handle(), 0);
      use(cuda.allocate(BYTES, stream), stream);
      long graph = driver.captures().streamEndCapture(0, stream.handle());
      driver
          .graphs()
          .graphLaunch(
              0,
              driver.graphs().graphInstantiateWithParams(0, graph, 0, 0).executable(),
              stream.handle());
      Runtime.getRuntime().addShutdownHook(new Thread(() -> driver.graphs().graphDestroy(graph)));
      exit();
    }
  },
  EXIT_BESIDE_A_CALLBACK {
    @Override
    void round(Race race) {
      Cuda cuda = RaceMain.open();
      CudaStream stream = cuda.device(0).createStream(StreamOptions.NON_BLOCKING);
      CountDownLatch started = new CountDownLatch(1);
      CompletableFuture<Void> _ =
          stream.addCallback(() -> {
            started.countDown();
            await(new CountDownLatch(1)); // for ever
          });
      use(cuda.allocate(BYTES, stream), stream); // which waits for it
      await(started);
      exit();
    }
  },
  EXIT_BESIDE_WORK {
    @Override
    void round(Race race) throws Exception {
      exitBesideWork(race, RaceMain.open());
    }
  },
  EXIT_WITH_A_CLOSE_HOOK_BESIDE_WORK {
    @Override
    void round(Race race) throws Exception {
      Cuda cuda = RaceMain.open();
      Runtime.getRuntime().addShutdownHook(new Thread(cuda::close));
      exitBesideWork(race, cuda);
    }
  };

  private static final int BYTES = 1 << 20;
  private static final int PATIENCE_SECONDS = 120;

  abstract void round(Race race) throws Exception;

  /** Ends the JVM, which is the last that can go wrong. */
  void exit() {
    System.out.println("survived " + this);
    System.exit(0);
  }

  private static MemorySegment heap() {
    return MemorySegment.ofArray(new byte[BYTES]);
  }

  private static void use(Buffer buffer) {
    try (buffer) {
      buffer.fill((byte) 2);
    }
  }

  private static void use(Buffer buffer, CudaStream stream) {
    try (buffer) {
      buffer.fill((byte) 1, stream);
    }
  }

  /** Memory of the driver, which captures in global mode forbid. */
  private static void useOnce(Cuda cuda, CudaStream stream) {
    use(MemoryResource.direct().allocate(BYTES, stream), stream);
    use(MemoryResource.async().allocate(BYTES, stream), stream);
    cuda.directPinned().allocate(BYTES).close();
    stream.isDone();
  }

  private static void release(Cuda cuda) {
    cuda.defaultMemoryPool().freeAllBlocks();
    cuda.device(0).memoryInfo(); // which ends with the Cuda
  }

  /** Captures as another library does, in global mode, in a stream that nobody knows. */
  private static void captureUntil(CudaDriver driver, CountDownLatch over) {
    long stream = driver.streams().streamCreateWithPriority(0, 1, 0);
    long memory = driver.memory().memAlloc(0, BYTES);
    while (over.getCount() > 0) {
      driver.captures().streamBeginCapture(0, stream, 0);
      for (int i = 0; i < 100; i++) {
        driver.transfers().memsetD8Async(0, memory, (byte) i, BYTES, stream);
      }
      driver.graphs().graphDestroy(driver.captures().streamEndCapture(0, stream));
    }
    driver.memory().memFree(0, memory);
    driver.streams().streamDestroy(0, stream);
  }

  private static void copyOutOfForgotten(Cuda cuda, MemorySegment heap) {
    cuda.directPinned().allocate(BYTES).copyTo(heap);
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** A callback whose stream or Cuda ends fails, but it does end. */
  private static void finish(CompletableFuture<Void> callback) {
    try {
      callback.get(PATIENCE_SECONDS, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      if (!(e.getCause() instanceof IllegalStateException)) {
        throw new AssertionError(e);
      }
    } catch (InterruptedException | TimeoutException e) {
      throw new AssertionError(e);
    }
  }

  /** An arena cannot be closed while a call holds it. */
  private static void close(Arena arena) {
    boolean closed = false;
    while (!closed) {
      try {
        arena.close();
        closed = true;
      } catch (IllegalStateException e) {
        closed = !arena.scope().isAlive();
      }
    }
  }

  void exitBesideWork(Race race, Cuda cuda) throws Exception {
    Buffer buffer = cuda.allocate(BYTES);
    Buffer other = cuda.allocate(BYTES);
    MemorySegment in = heap();
    MemorySegment out = heap();
    race.run(
        RaceMain.untilClosed(() -> buffer.copyFrom(in)),
        RaceMain.untilClosed(() -> buffer.copyTo(out)),
        RaceMain.untilClosed(() -> other.fill((byte) 1)),
        RaceMain.untilClosed(() -> use(cuda.allocate(BYTES))),
        () -> {
          for (int i = 0; i < 20; i++) {
            use(cuda.allocate(BYTES));
          }
          exit();
        });
  }
}
