package io.cuvette.testkit.crowd;

import io.cuvette.Buffer;
import io.cuvette.CopyBatch;
import io.cuvette.CopyBox;
import io.cuvette.CudaStream;
import io.cuvette.GrowableBuffer;
import io.cuvette.LaunchConfig;
import io.cuvette.ManagedBuffer;
import io.cuvette.MemoryLocation;
import io.cuvette.PinnedBuffer;
import io.cuvette.Scope;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Memory that all threads use and close as they like, without any order: what is in it is of no
 * account, what becomes of everything else is.
 */
final class SharedSteps {
  private static final int MOST_HEAP_BYTES = 1 << 16;
  private static final int MOST_GROWN_BYTES = 16 << 20;

  private SharedSteps() {}

  /** The steps, each as often as it is to be done. */
  static List<CrowdStep> all() {
    return List.of(
        SharedSteps::allocate,
        SharedSteps::allocate,
        SharedSteps::allocate,
        SharedSteps::allocate,
        SharedSteps::close,
        SharedSteps::close,
        SharedSteps::close,
        SharedSteps::fill,
        SharedSteps::copy,
        SharedSteps::copyBox,
        SharedSteps::copyBatch,
        SharedSteps::copyHeap,
        SharedSteps::copyAsync,
        SharedSteps::launch,
        SharedSteps::slice,
        SharedSteps::use,
        SharedSteps::allocatePinned,
        SharedSteps::allocatePinned,
        SharedSteps::copyPinned,
        SharedSteps::manage,
        SharedSteps::grow,
        SharedSteps::register);
  }

  private static void allocate(CrowdMember by) {
    if (by.crowd.buffers.isFull()) {
      close(by);
    } else {
      by.crowd.buffers.add(by.crowd.free(by.random).allocate(by.size(), by.stream()));
    }
  }

  private static void close(CrowdMember by) {
    Buffer taken = by.take(by.crowd.buffers);
    if (taken != null) {
      taken.close();
    }
  }

  private static void fill(CrowdMember by) {
    Buffer buffer = by.any(by.crowd.buffers);
    if (buffer != null) {
      buffer.fill((byte) 1, by.stream());
    }
  }

  /** Two buffers of the same size that are not parts of one; null if there are none. */
  private static @Nullable List<Buffer> two(CrowdMember by) {
    Buffer one = by.any(by.crowd.buffers);
    Buffer two = by.any(by.crowd.buffers);
    if (one == null || two == null || one == two) {
      return null;
    }
    long bytes = Math.min(one.byteSize(), two.byteSize());
    return List.of(one.slice(0, bytes), two.slice(0, bytes));
  }

  private static void copy(CrowdMember by) {
    List<Buffer> two = two(by);
    if (two != null) {
      two.get(0).copyFrom(two.get(1), by.stream());
    }
  }

  private static void copyBox(CrowdMember by) {
    List<Buffer> two = two(by);
    if (two != null) {
      long pitch = Math.max(1, two.getFirst().byteSize() / 3);
      CopyBox box =
          CopyBox.of(1 + by.random.nextLong(pitch), two.getFirst().byteSize() / pitch)
              .withSource(0, pitch)
              .withTarget(0, pitch);
      by.crowd.futures.add(two.get(0).copyFromAsync(two.get(1), box, by.stream()));
    }
  }

  private static void copyBatch(CrowdMember by) {
    List<Buffer> two = two(by);
    if (two != null) {
      CopyBatch batch = CopyBatch.of(two.subList(0, 1), two.subList(1, 2));
      by.crowd.futures.add(batch.copyAsync(by.stream()));
    }
  }

  private static void copyHeap(CrowdMember by) {
    Buffer buffer = by.any(by.crowd.buffers);
    if (buffer == null) {
      return;
    }
    byte[] host = new byte[(int) Math.min(buffer.byteSize(), MOST_HEAP_BYTES)];
    Buffer head = buffer.slice(0, host.length);
    try (Scope _ = by.stream().use()) {
      switch (by.random.nextInt(4)) {
        case 0 -> head.copyFrom(MemorySegment.ofArray(host));
        case 1 -> head.copyTo(MemorySegment.ofArray(host));
        case 2 -> head.gatherFrom(List.of(MemorySegment.ofArray(host)));
        default -> head.scatterTo(List.of(MemorySegment.ofArray(host)));
      }
    }
  }

  /** Pageable memory and a completion, of which some are cancelled and some not waited for. */
  private static void copyAsync(CrowdMember by) {
    Buffer buffer = by.any(by.crowd.buffers);
    if (buffer == null) {
      return;
    }
    long bytes = Math.min(buffer.byteSize(), MOST_HEAP_BYTES);
    MemorySegment host = Arena.ofAuto().allocate(bytes);
    Buffer head = buffer.slice(0, bytes);
    CudaStream stream = by.stream();
    CompletableFuture<Void> done =
        switch (by.random.nextInt(4)) {
          case 0 -> head.copyFromAsync(host, stream);
          case 1 -> head.copyToAsync(host, stream);
          case 2 -> head.gatherFromAsync(List.of(host), stream);
          default -> head.scatterToAsync(List.of(host), stream);
        };
    if (by.onceIn(4)) {
      done.cancel(true);
    }
    by.crowd.futures.add(done);
  }

  private static void launch(CrowdMember by) {
    Buffer buffer = by.any(by.crowd.buffers);
    if (buffer != null) {
      int count = (int) Math.min(256, buffer.byteSize() / Float.BYTES);
      by.stream()
          .launch(
              by.crowd.scale, LaunchConfig.forElements(Math.max(1, count), 64), buffer, 1f, count);
    }
  }

  private static void slice(CrowdMember by) {
    Buffer buffer = by.any(by.crowd.buffers);
    if (buffer != null) {
      Buffer part = buffer.slice(0, buffer.byteSize() / 2);
      part.fill((byte) 5, by.stream());
      part.close();
    }
  }

  private static void use(CrowdMember by) {
    Buffer buffer = by.any(by.crowd.buffers);
    if (buffer != null) {
      buffer.recordUse(by.stream());
    }
  }

  private static void allocatePinned(CrowdMember by) {
    if (by.crowd.pinnedBuffers.isFull() || by.onceIn(3)) {
      PinnedBuffer taken = by.take(by.crowd.pinnedBuffers);
      if (taken != null) {
        taken.close();
      }
    } else {
      by.crowd.pinnedBuffers.add(by.crowd.pinned.allocate(by.size()));
    }
  }

  private static void copyPinned(CrowdMember by) {
    PinnedBuffer pinned = by.any(by.crowd.pinnedBuffers);
    Buffer buffer = by.any(by.crowd.buffers);
    if (pinned == null || buffer == null) {
      return;
    }
    long bytes = Math.min(pinned.byteSize(), buffer.byteSize());
    Buffer head = buffer.slice(0, bytes);
    switch (by.random.nextInt(3)) {
      case 0 -> by.crowd.futures.add(head.copyFromAsync(pinned.slice(0, bytes), by.stream()));
      case 1 -> head.copyTo(pinned.slice(0, bytes), by.stream());
      default ->
          by.crowd.futures.add(head.copyToAsync(pinned.segment().asSlice(0, bytes), by.stream()));
    }
  }

  private static void manage(CrowdMember by) {
    ManagedBuffer managed = by.any(by.crowd.managed);
    if (managed == null || !by.crowd.managed.isFull()) {
      by.crowd.managed.add(by.crowd.cuda.allocateManaged(by.size()));
    } else if (by.onceIn(3)) {
      Stream.ofNullable(by.take(by.crowd.managed)).forEach(Buffer::close);
    } else if (by.random.nextBoolean()) {
      MemoryLocation place =
          by.random.nextBoolean() ? MemoryLocation.host() : MemoryLocation.device(by.crowd.device);
      managed.prefetch(place, by.stream());
    } else {
      managed.setReadMostly(by.random.nextBoolean());
      managed.fill((byte) 1, by.stream());
    }
  }

  private static void grow(CrowdMember by) {
    GrowableBuffer buffer = by.any(by.crowd.growables);
    if (buffer == null || !by.crowd.growables.isFull()) {
      by.crowd.growables.add(by.crowd.device.growable(MOST_GROWN_BYTES));
    } else if (by.onceIn(5)) {
      Stream.ofNullable(by.take(by.crowd.growables)).forEach(Buffer::close);
    } else {
      long wanted = 1 + by.random.nextLong(MOST_GROWN_BYTES);
      if (wanted > buffer.byteSize()) {
        buffer.grow(wanted);
      } else {
        buffer.shrink(wanted);
      }
      buffer.fill((byte) 3, by.stream());
    }
  }

  /** Memory of the program, page-locked for as long as one copy is queued. */
  private static void register(CrowdMember by) {
    Buffer buffer = by.any(by.crowd.buffers);
    if (buffer != null) {
      long bytes = Math.min(buffer.byteSize(), MOST_HEAP_BYTES);
      try (Arena arena = Arena.ofShared();
          PinnedBuffer registered = by.crowd.cuda.registerHost(arena.allocate(bytes))) {
        buffer.slice(0, bytes).copyTo(registered, by.stream());
      }
    }
  }
}
