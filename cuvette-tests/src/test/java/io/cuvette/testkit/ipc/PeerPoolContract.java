package io.cuvette.testkit.ipc;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AllocationHandle;
import io.cuvette.Buffer;
import io.cuvette.BufferDescriptor;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DriverPoolResource;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import io.cuvette.testkit.support.Bytes;
import io.cuvette.testkit.support.Peers;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.UUID;
import org.junit.jupiter.api.extension.ExtendWith;

/** What memory of a pool that is shared must do, whatever the kind of the pool. */
@ExtendWith(Peers.Extension.class)
abstract class PeerPoolContract {
  private static final int SIZE = 10_000;

  final SharedPool kind;

  PeerPoolContract(SharedPool kind) {
    this.kind = kind;
  }

  static Buffer filled(DriverPoolResource pool, long seed) {
    Buffer buffer = pool.allocate(SIZE);
    Bytes.put(buffer, Bytes.random(seed, SIZE));
    return buffer;
  }

  static void assertHolds(Buffer buffer, long seed) {
    assertThat(Bytes.of(buffer)).isEqualTo(Bytes.random(seed, Math.toIntExact(buffer.byteSize())));
  }

  @CudaTest
  void importerSeesWhatTheExporterWrote_andTheExporterWhatTheImporterDid(
      Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        Buffer buffer = filled(pool, 1);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.importPool("pool", kind, pool.allocationHandle());
      child.ask("import", "buffer", "pool", buffer.descriptor());
      assertThat(child.holds("buffer", 1)).isTrue();
      assertThat(child.ask("isMapped", "buffer")).isEqualTo("true");
      assertThat(buffer.isMapped()).isFalse();
      child.ask("put", "buffer", 2);
      assertHolds(buffer, 2);
      Bytes.put(buffer, Bytes.random(3, SIZE));
      assertThat(child.holds("buffer", 3)).isTrue();
      child.closeAll("buffer", "pool");
      assertHolds(buffer, 3);
    }
  }

  @CudaTest
  void exporterCanBeTheOtherProcess(Subject subject, Peers peers) {
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("pool", "pool", kind);
      child.ask("allocate", "buffer", "pool", SIZE);
      child.ask("put", "buffer", 1);
      try (AllocationHandle handle = child.exportPool("pool");
          DriverPoolResource pool = kind.importFrom(subject.cuda(), handle);
          Buffer buffer = SharedPool.importBuffer(pool, child.descriptor("buffer"))) {
        assertThat(buffer.byteSize()).isEqualTo(SIZE);
        assertThat(buffer.isMapped()).isTrue();
        assertHolds(buffer, 1);
        Bytes.put(buffer, Bytes.random(2, SIZE));
        assertThat(child.holds("buffer", 2)).isTrue();
      }
      subject.cuda().device(0).synchronize();
      child.closeAll("buffer", "pool");
    }
  }

  @CudaTest
  void identity_isTheSameInBothProcesses(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      UUID uuid = pool.uuid().orElseThrow();
      assertThat(pool.isMapped()).isFalse();
      assertThat(pool.isIpcEnabled()).isTrue();
      assertThat(pool.allocationHandle().uuid()).contains(uuid);
      child.importPool("pool", kind, pool.allocationHandle());
      assertThat(child.ask("poolFacts", "pool"))
          .isEqualTo("mapped=true ipc=true owned=true uuid=" + uuid);
    }
  }

  @CudaTest
  void twoBuffers_goToTwoProcesses_andEachWritesOne(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        Buffer one = filled(pool, 1);
        Buffer two = filled(pool, 2);
        RemoteSharer first = RemoteSharer.start(peers, subject);
        RemoteSharer second = RemoteSharer.start(peers, subject)) {
      for (RemoteSharer child : List.of(first, second)) {
        child.importPool("pool", kind, pool.allocationHandle());
        child.ask("import", "one", "pool", one.descriptor());
        child.ask("import", "two", "pool", two.descriptor());
        assertThat(child.holds("one", 1)).isTrue();
        assertThat(child.holds("two", 2)).isTrue();
      }
      first.ask("put", "one", 11);
      second.ask("put", "two", 12);
      assertHolds(one, 11);
      assertHolds(two, 12);
      assertThat(first.holds("two", 12)).isTrue();
      assertThat(second.holds("one", 11)).isTrue();
      first.closeAll("one", "two", "pool");
      second.closeAll("one", "two", "pool");
    }
  }

  @CudaTest
  void slice_isSharedAsItsPartOfTheBuffer(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        Buffer buffer = filled(pool, 1);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      byte[] content = Bytes.of(buffer);
      child.importPool("pool", kind, pool.allocationHandle());
      BufferDescriptor part = buffer.slice(1000).slice(234, 500).descriptor();
      assertThat(part.byteSize()).isEqualTo(500);
      child.ask("import", "part", "pool", part);
      child.ask("import", "all", "pool", buffer.descriptor());
      child.ask("slice", "mine", "all", 1234, 500);
      child.ask("put", "part", 2);
      assertThat(child.holds("mine", 2)).isTrue();
      System.arraycopy(Bytes.random(2, 500), 0, content, 1234, 500);
      assertThat(Bytes.of(buffer)).isEqualTo(content);
      child.closeAll("all");
      assertThat(child.holds("part", 2)).as("the other import stays").isTrue();
      child.closeAll("part", "pool");
    }
  }

  @CudaTest
  void importedMemory_isSharedOn(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        Buffer buffer = filled(pool, 1);
        RemoteSharer second = RemoteSharer.start(peers, subject);
        RemoteSharer third = RemoteSharer.start(peers, subject)) {
      second.importPool("pool", kind, pool.allocationHandle());
      second.ask("import", "buffer", "pool", buffer.descriptor());
      try (AllocationHandle handle = second.exportPool("pool")) {
        third.importPool("pool", kind, handle);
      }
      third.ask("import", "buffer", "pool", second.descriptor("buffer"));
      assertThat(third.holds("buffer", 1)).isTrue();
      third.ask("put", "buffer", 3);
      assertThat(second.holds("buffer", 3)).isTrue();
      assertHolds(buffer, 3);
      second.closeAll("buffer", "pool");
      assertThat(third.holds("buffer", 3)).as("without the one between").isTrue();
      third.closeAll("buffer", "pool");
    }
  }

  @CudaTest
  void manyBuffers_ofOneAndOfThreePools_keepTheirContents(Subject subject, Peers peers) {
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      for (int pools : new int[] {1, 3}) {
        List<AutoCloseable> mine = new ArrayList<>();
        List<DriverPoolResource> sources = new ArrayList<>();
        List<String> theirs = new ArrayList<>();
        for (int p = 0; p < pools; p++) {
          sources.add(kind.create(subject.cuda()));
          child.importPool("pool" + p, kind, sources.get(p).allocationHandle());
        }
        for (int b = 0; b < 7; b++) {
          Buffer buffer = filled(sources.get(b % pools), b);
          mine.add(buffer);
          child.ask("import", "buffer" + b, "pool" + b % pools, buffer.descriptor());
          theirs.add("buffer" + b);
        }
        for (int b = 0; b < 7; b++) {
          assertThat(child.holds("buffer" + b, b)).as("buffer %d", b).isTrue();
          child.ask("put", "buffer" + b, 100 + b);
        }
        for (int b = 0; b < 7; b++) {
          assertHolds((Buffer) mine.get(b), 100 + b);
        }
        for (int p = 0; p < pools; p++) {
          theirs.add("pool" + p);
        }
        child.closeAll(theirs.toArray(String[]::new));
        mine.forEach(buffer -> ((Buffer) buffer).close());
        sources.forEach(DriverPoolResource::close);
      }
    }
  }

  @CudaTest
  void poolImportedAgain_isTheOneThatIsKnown_alsoByItsUuid(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      UUID uuid = pool.uuid().orElseThrow();
      assertThatThrownBy(() -> child.ask("find", "early", kind, uuid))
          .hasMessageContaining(NoSuchElementException.class.getName())
          .hasMessageContaining(uuid.toString());
      child.importPool("pool", kind, pool.allocationHandle());
      child.importPool("again", kind, pool.allocationHandle());
      child.ask("find", "found", kind, uuid);
      assertThat(child.ask("same", "again", "pool")).isEqualTo("true");
      assertThat(child.ask("same", "found", "pool")).isEqualTo("true");
      child.closeAll("pool");
      assertThatThrownBy(() -> child.ask("find", "late", kind, uuid))
          .hasMessageContaining(NoSuchElementException.class.getName());
    }
  }

  /** A driver refuses that and is explained, or the second pool goes and the first stays. */
  @CudaTest
  void poolImportedAgain_whileABufferOfTheFirstIsHeld(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        Buffer buffer = filled(pool, 1);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.importPool("first", kind, pool.allocationHandle());
      child.ask("import", "held", "first", buffer.descriptor());
      child.closeAll("first");
      assertThatCode(() -> importAgain(child, pool, buffer))
          .satisfiesAnyOf(
              nothing -> assertThat(nothing).isNull(),
              refused -> assertThat(refused).hasMessageContaining("not given back yet"));
      assertThat(child.holds("held", 1)).isTrue();
      child.closeAll("held");
      assertHolds(buffer, 1);
    }
  }

  private void importAgain(RemoteSharer child, DriverPoolResource pool, Buffer buffer) {
    for (int round = 0; round < 3; round++) {
      child.importPool("again", kind, pool.allocationHandle());
      child.ask("import", "part", "again", buffer.descriptor());
      assertThat(child.holds("part", 1)).isTrue();
      child.closeAll("part", "again");
      child.ask("synchronize");
      assertThat(child.holds("held", 1)).isTrue();
    }
  }

  @CudaTest
  void poolOfTheOtherKind_isRefused(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.importPool("pool", kind, pool.allocationHandle());
      assertThatThrownBy(() -> child.importPool("wrong", kind.other(), pool.allocationHandle()))
          .hasMessageContaining("IllegalArgumentException");
      assertThatThrownBy(() -> child.ask("find", "wrong", kind.other(), pool.uuid().orElseThrow()))
          .hasMessageContaining("IllegalArgumentException");
      child.closeAll("pool");
    }
  }

  @CudaTest
  void bufferOfTheOtherKind_isRefused(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        DriverPoolResource other = kind.other().create(subject.cuda());
        Buffer buffer = filled(other, 1);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.importPool("pool", kind, pool.allocationHandle());
      assertThatThrownBy(() -> child.ask("import", "buffer", "pool", buffer.descriptor()))
          .hasMessageContaining("IllegalArgumentException");
      assertThatThrownBy(() -> child.ask("importPlain", "buffer", buffer.descriptor()))
          .hasMessageContaining("IllegalArgumentException");
      child.closeAll("pool");
    }
  }

  @CudaTest
  void mappedPool_doesNotAllocate(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.importPool("pool", kind, pool.allocationHandle());
      assertThatThrownBy(() -> child.ask("allocate", "buffer", "pool", 100))
          .hasMessageContaining("UnsupportedOperationException");
      child.closeAll("pool");
    }
  }

  @CudaTest
  void descriptorOfAnotherPool_isRefused_andHarmsNothing(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        DriverPoolResource other = kind.create(subject.cuda());
        Buffer buffer = filled(pool, 1);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.importPool("pool", kind, pool.allocationHandle());
      child.importPool("other", kind, other.allocationHandle());
      assertThatThrownBy(() -> child.ask("import", "wrong", "other", buffer.descriptor()))
          .hasMessageContaining("CudaException")
          .hasMessageContaining("INVALID_VALUE");
      child.ask("import", "right", "pool", buffer.descriptor());
      assertThat(child.holds("right", 1)).isTrue();
      assertThatThrownBy(() -> child.ask("import", "wrong", "other", buffer.descriptor()))
          .as("also while it is imported rightly")
          .hasMessageContaining("CudaException")
          .hasMessageContaining("INVALID_VALUE");
      assertThat(child.holds("right", 1)).isTrue();
      child.closeAll("right", "other", "pool");
    }
  }

  @CudaTest
  void sameDescriptorTwice_isOneMapping_andEitherMayCloseFirst(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        Buffer buffer = filled(pool, 1);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.importPool("pool", kind, pool.allocationHandle());
      for (List<String> order : List.of(List.of("a", "b"), List.of("b", "a"))) {
        child.ask("import", "a", "pool", buffer.descriptor());
        child.ask("import", "b", "pool", buffer.descriptor());
        child.closeAll(order.getFirst());
        assertThat(child.holds(order.getLast(), 1)).isTrue();
        child.closeAll(order.getLast());
      }
      assertHolds(buffer, 1);
      child.closeAll("pool");
    }
  }

  @CudaTest
  void resource_mayBeClosedBeforeItsBuffers_onBothSides(Subject subject, Peers peers) {
    DriverPoolResource pool = kind.create(subject.cuda());
    try (Buffer buffer = filled(pool, 1);
        RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.importPool("pool", kind, pool.allocationHandle());
      child.ask("import", "buffer", "pool", buffer.descriptor());
      child.closeAll("pool");
      pool.close();
      assertThat(child.holds("buffer", 1)).isTrue();
      child.ask("put", "buffer", 2);
      assertHolds(buffer, 2);
      child.closeAll("buffer");
    }
    subject.cuda().device(0).synchronize();
  }

  @CudaTest
  void rawDescriptor_staysTheCallersToClose(Subject subject, Peers peers) {
    DescriptorCalls calls = DescriptorCalls.find().orElseThrow();
    Cuda cuda = subject.cuda();
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("pool", "pool", kind);
      child.ask("allocate", "buffer", "pool", SIZE);
      child.ask("put", "buffer", 1);
      try (AllocationHandle handle = child.exportPool("pool")) {
        int descriptor = calls.duplicate(handle.descriptor());
        try (DriverPoolResource pool = kind.importFrom(cuda, descriptor)) {
          assertThat(calls.isOpen(descriptor)).isTrue();
          calls.close(descriptor);
          assertThat(pool.uuid()).isEmpty();
          UUID uuid = handle.uuid().orElseThrow();
          assertThat(SharedPool.register(pool, uuid)).isSameAs(pool);
          assertThat(pool.uuid()).contains(uuid);
          assertThat(kind.fromRegistry(cuda, uuid)).isSameAs(pool);
          try (Buffer buffer = SharedPool.importBuffer(pool, child.descriptor("buffer"))) {
            assertHolds(buffer, 1);
          }
          cuda.device(0).synchronize();
        }
        assertThat(calls.isOpen(handle.descriptor())).isTrue();
      }
      child.closeAll("buffer", "pool");
    }
  }

  @CudaTest
  void importOnAStream_isUsedAndClosedInItsOrder(Subject subject, Peers peers) {
    Cuda cuda = subject.cuda();
    try (RemoteSharer child = RemoteSharer.start(peers, subject);
        CudaStream stream = cuda.device(0).createStream()) {
      child.ask("pool", "pool", kind);
      child.ask("allocate", "buffer", "pool", SIZE);
      child.ask("put", "buffer", 1);
      try (AllocationHandle handle = child.exportPool("pool");
          DriverPoolResource pool = kind.importFrom(cuda, handle)) {
        Buffer buffer = SharedPool.importBuffer(pool, child.descriptor("buffer"), stream);
        assertThat(buffer.stream()).isEqualTo(stream);
        buffer.fill((byte) 9, stream);
        buffer.close();
        stream.synchronize();
      }
      try (AllocationHandle handle = child.exportPool("pool");
          DriverPoolResource pool = kind.importFrom(cuda, handle);
          Buffer buffer = SharedPool.importBuffer(pool, child.descriptor("buffer"))) {
        assertThat(Bytes.of(buffer)).as("what was queued before the close").containsOnly(9);
      }
      cuda.device(0).synchronize();
      child.closeAll("buffer", "pool");
    }
  }

  @CudaTest
  void processThatExits_takesNothingOfTheExportersWithIt(Subject subject, Peers peers) {
    try (DriverPoolResource pool = kind.create(subject.cuda());
        Buffer buffer = filled(pool, 1)) {
      try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
        child.importPool("pool", kind, pool.allocationHandle());
        child.ask("import", "buffer", "pool", buffer.descriptor());
        child.ask("put", "buffer", 2);
        child.exit();
      }
      assertHolds(buffer, 2);
      Bytes.put(buffer, Bytes.random(3, SIZE));
      assertHolds(buffer, 3);
    }
    subject.cuda().device(0).synchronize();
  }

  @CudaTest
  void fourThreads_importAndCloseTheSameBuffer_overAndOver(Subject subject, Peers peers)
      throws InterruptedException {
    Cuda cuda = subject.cuda();
    try (RemoteSharer child = RemoteSharer.start(peers, subject)) {
      child.ask("pool", "pool", kind);
      child.ask("allocate", "buffer", "pool", SIZE);
      child.ask("put", "buffer", 1);
      try (AllocationHandle handle = child.exportPool("pool");
          DriverPoolResource pool = kind.importFrom(cuda, handle)) {
        BufferDescriptor descriptor = child.descriptor("buffer");
        byte[] expected = Bytes.random(1, SIZE);
        // Often one is the last to close while another imports.
        Together.run(
            4,
            100,
            () -> {
              try (Buffer buffer = SharedPool.importBuffer(pool, descriptor)) {
                assertThat(Bytes.of(buffer)).isEqualTo(expected);
              }
            });
        cuda.device(0).synchronize();
      }
      assertThat(child.holds("buffer", 1)).isTrue();
      child.closeAll("buffer", "pool");
    }
  }
}
