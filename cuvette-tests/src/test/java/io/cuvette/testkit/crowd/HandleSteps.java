package io.cuvette.testkit.crowd;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.Buffer;
import io.cuvette.CudaEvent;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.LaunchConfig;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedBuffer;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.PoolOptions;
import io.cuvette.StreamOptions;
import io.cuvette.testkit.support.TestKernels;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Streams, events, callbacks and pools that live short. */
final class HandleSteps {
  private HandleSteps() {}

  /** Steps with what the thread has for itself, or what keeps order. */
  static List<CrowdStep> calm() {
    return List.of(
        HandleSteps::shortPool,
        HandleSteps::shortStream,
        HandleSteps::shortModule,
        HandleSteps::callback,
        HandleSteps::timeOut,
        HandleSteps::tidyUp,
        HandleSteps::lookAround);
  }

  /** Steps with streams and events of everybody. */
  static List<CrowdStep> wild() {
    return List.of(
        HandleSteps::stream,
        HandleSteps::stream,
        HandleSteps::event,
        HandleSteps::event,
        HandleSteps::waitForEvent,
        HandleSteps::waitForStream,
        HandleSteps::synchronize,
        HandleSteps::pool,
        HandleSteps::interrupt);
  }

  /** A pool that ends before its buffer, or after it. */
  private static void shortPool(CrowdMember by) throws Exception {
    AutoCloseable pool = pool(by, by.random.nextInt(6));
    try (pool) {
      CudaStream stream = by.quietStream();
      Buffer buffer =
          pool instanceof PinnedMemoryPool pinned
              ? pinned.allocate(by.size())
              : ((MemoryResource) pool).allocate(by.size(), stream);
      try (buffer) {
        buffer.fill((byte) 1, stream);
        if (by.random.nextBoolean()) {
          pool.close();
        }
        buffer.fill((byte) 2, stream);
      }
    }
  }

  private static AutoCloseable pool(CrowdMember by, int kind) {
    return switch (kind) {
      case 0 -> new MemoryPool(by.crowd.cuda);
      case 1 -> new ElasticMemoryPool(by.crowd.cuda);
      case 2 -> new AsyncMemoryPool(by.crowd.cuda);
      case 3 -> new PinnedMemoryPool(by.crowd.cuda);
      case 4 -> new MemoryPool(by.crowd.cuda, PoolOptions.DEFAULTS.withUpstream(by.crowd.cached));
      default -> new DeviceMemoryResource(by.crowd.device);
    };
  }

  private static void shortStream(CrowdMember by) {
    CudaStream stream = by.crowd.device.createStream(StreamOptions.NON_BLOCKING);
    try (Buffer buffer = by.crowd.resource(by.random).allocate(by.size(), stream)) {
      buffer.fill((byte) 1, stream);
      if (by.random.nextBoolean()) {
        stream.close();
      }
    } finally {
      stream.close();
    }
  }

  private static void shortModule(CrowdMember by) {
    try (CudaModule module = TestKernels.launches(by.crowd.cuda)) {
      by.quietStream().launch(module.kernel("doNothing"), LaunchConfig.forElements(1, 1));
    }
  }

  /** A callback that allocates, works and frees. */
  private static void callback(CrowdMember by) {
    CudaStream stream = by.crowd.quiet.getFirst();
    by.crowd.called.add(
        stream.addCallback(() -> {
          try (Buffer buffer = by.crowd.cached.allocate(512, stream)) {
            buffer.fill((byte) 1, stream);
          }
        }));
  }

  private static void timeOut(CrowdMember by) {
    by.crowd.futures.add(by.quietStream().onComplete().orTimeout(1, TimeUnit.MICROSECONDS));
  }

  private static void tidyUp(CrowdMember by) {
    switch (by.random.nextInt(6)) {
      case 0 -> by.crowd.cached.freeAllBlocks();
      case 1 -> by.crowd.elastic.freeAllBlocks();
      case 2 -> by.crowd.cached.trim(1 << 20);
      case 3 -> by.crowd.elastic.trim(1 << 20);
      case 4 -> by.crowd.ordered.freeAllBlocks();
      default -> by.crowd.pinned.freeAllBlocks();
    }
  }

  private static void lookAround(CrowdMember by) {
    switch (by.random.nextInt(4)) {
      case 0 -> {
        by.crowd.cached.assertConsistent();
        by.crowd.elastic.assertConsistent();
        by.crowd.pinned.assertConsistent();
      }
      case 1 -> {
        Object _ = by.crowd.cached.stats();
        Object _ = by.crowd.elastic.stats();
        Object _ = by.crowd.elastic.pages();
        Object _ = by.crowd.pinned.stats();
        Object _ = by.crowd.ordered.usedBytes();
      }
      case 2 -> by.crowd.cuda.openObjects();
      default -> by.crowd.device.synchronize();
    }
  }

  private static void stream(CrowdMember by) {
    if (!by.crowd.streams.isFull()) {
      by.crowd.streams.add(by.crowd.device.createStream(StreamOptions.NON_BLOCKING));
    } else {
      CudaStream taken = by.take(by.crowd.streams);
      if (taken != null) {
        by.crowd.streams.add(by.crowd.device.createStream(StreamOptions.NON_BLOCKING));
        taken.close();
      }
    }
  }

  private static void event(CrowdMember by) {
    CudaEvent event = by.any(by.crowd.events);
    if (event == null || !by.crowd.events.isFull()) {
      by.crowd.events.add(by.crowd.device.createEvent());
    } else if (by.onceIn(3)) {
      CudaEvent taken = by.take(by.crowd.events);
      if (taken != null) {
        taken.close();
      }
    } else {
      event.record(by.stream());
    }
  }

  private static void waitForEvent(CrowdMember by) {
    CudaEvent event = by.any(by.crowd.events);
    if (event != null) {
      switch (by.random.nextInt(4)) {
        case 0 -> event.synchronize();
        case 1 -> {
          boolean _ = event.isDone();
        }
        default -> by.stream().waitFor(event);
      }
    }
  }

  private static void waitForStream(CrowdMember by) {
    CudaStream one = by.stream();
    CudaStream two = by.stream();
    if (one != two) {
      one.waitFor(two);
    }
  }

  private static void synchronize(CrowdMember by) {
    if (by.random.nextBoolean()) {
      by.stream().synchronize();
    } else {
      boolean _ = by.stream().isDone();
    }
  }

  /** Pools that others allocate from and close. */
  private static void pool(CrowdMember by) throws Exception {
    MemoryResource pool = by.any(by.crowd.pools);
    if (pool == null || !by.crowd.pools.isFull()) {
      int kind = by.random.nextInt(2);
      by.crowd.pools.add((MemoryResource) pool(by, kind));
    } else if (by.onceIn(3)) {
      MemoryResource taken = by.take(by.crowd.pools);
      if (taken instanceof AutoCloseable closeable) {
        closeable.close();
      }
    } else {
      by.crowd.buffers.add(pool.allocate(by.size(), by.stream()));
    }
  }

  /** A thread whose interrupt status is set goes on, or is told so, and keeps the status. */
  private static void interrupt(CrowdMember by) {
    Thread.currentThread().interrupt();
    try (PinnedBuffer host = by.crowd.pinned.allocate(by.size());
        Buffer buffer = by.crowd.resource(by.random).allocate(host.byteSize(), by.own)) {
      buffer.copyFrom(host, by.own);
      by.own.synchronize();
    } finally {
      boolean _ = Thread.interrupted();
    }
  }
}
