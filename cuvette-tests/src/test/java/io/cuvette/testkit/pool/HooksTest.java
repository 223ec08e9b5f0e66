package io.cuvette.testkit.pool;

import static io.cuvette.testkit.support.Sizes.PAGE;
import static io.cuvette.testkit.support.Sizes.UNIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.MemoryHook;
import io.cuvette.MemoryLimit;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.OutOfDeviceMemoryException;
import io.cuvette.Registration;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

class HooksTest {

  /** Notes what it is told. */
  private static final class Notes implements MemoryHook {
    private final String name;
    private final List<String> notes;

    Notes(String name, List<String> notes) {
      this.name = name;
      this.notes = notes;
    }

    @Override
    public void allocPreprocess(Growth growth) {
      assertThat(growth.address()).isZero();
      notes.add(name + "alloc<" + growth.blockBytes());
    }

    @Override
    public void allocPostprocess(Growth growth) {
      notes.add(name + "alloc>" + growth.blockBytes() + failed(growth.address()));
    }

    @Override
    public void mallocPreprocess(Block block) {
      assertThat(block.address()).isZero();
      assertThat(block.blockId()).isZero();
      notes.add(name + "malloc<" + block.requestedBytes() + "/" + block.blockBytes());
    }

    @Override
    public void mallocPostprocess(Block block) {
      notes.add(name + "malloc>" + block.requestedBytes() + failed(block.address()));
    }

    @Override
    public void freePreprocess(Block block) {
      notes.add(name + "free<" + block.blockBytes() + failed(block.address()));
    }

    @Override
    public void freePostprocess(Block block) {
      notes.add(name + "free>" + block.blockBytes() + failed(block.address()));
    }

    private static String failed(long address) {
      return address == 0 ? " at 0" : "";
    }
  }

  @CudaTest
  void hook_seesTwoAllocationsAndOneGrowth(MemoryPool pool) {
    List<String> notes = new ArrayList<>();
    try (var _ = pool.addHook(new Notes("", notes))) {
      pool.allocate(1).close();
      pool.allocate(1).close();
      assertThat(notes)
          .containsExactly(
              "malloc<1/512",
              "alloc<512",
              "alloc>512",
              "malloc>1",
              "free<512",
              "free>512",
              "malloc<1/512",
              "malloc>1",
              "free<512",
              "free>512");
    }
  }

  @CudaTest
  void hooks_areCalledInOrder_beforeAndAfter(MemoryPool pool) {
    List<String> notes = new ArrayList<>();
    try (var _ = pool.addHook(new Notes("a ", notes));
        var _ = pool.addHook(new Notes("b ", notes))) {
      pool.allocate(1).close();
    }
    assertThat(notes)
        .containsExactly(
            "a malloc<1/512",
            "b malloc<1/512",
            "a alloc<512",
            "b alloc<512",
            "a alloc>512",
            "b alloc>512",
            "a malloc>1",
            "b malloc>1",
            "a free<512",
            "b free<512",
            "a free>512",
            "b free>512");
  }

  @CudaTest
  void blockId_isTheSameOnTheWayOutAndBack(Cuda cuda, MemoryPool pool) {
    List<MemoryHook.Block> out = new ArrayList<>();
    List<MemoryHook.Block> back = new ArrayList<>();
    MemoryHook hook =
        new MemoryHook() {
          @Override
          public void mallocPostprocess(Block block) {
            out.add(block);
          }

          @Override
          public void freePostprocess(Block block) {
            back.add(block);
          }
        };
    try (var _ = pool.addHook(hook)) {
      Buffer buffer = pool.allocate(700);
      buffer.close();
      assertThat(out).isEqualTo(back).hasSize(1);
      MemoryHook.Block block = out.getFirst();
      assertThat(block.address()).isEqualTo(buffer.address());
      assertThat(block.device()).isEqualTo(cuda.device(0));
      assertThat(block.requestedBytes()).isEqualTo(700);
      assertThat(block.blockBytes()).isEqualTo(1024);
      assertThat(block.blockId()).isNotZero();
      pool.allocate(0).close();
      assertThat(out.getLast().blockId()).as("without memory").isZero();
    }
  }

  @CudaTest
  void failure_isSeenAsAddressZero(MemoryPool pool) {
    List<String> notes = new ArrayList<>();
    try (var _ = pool.addHook(new Notes("", notes))) {
      pool.setLimit(MemoryLimit.ofBytes(UNIT));
      assertThatThrownBy(() -> pool.allocate(2 * UNIT))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(notes).containsExactly("malloc<1024/1024", "malloc>1024 at 0");
    }
  }

  @CudaTest(memory = "2MiB")
  void everyAttemptToGrow_isSeen(MemoryPool pool) {
    List<String> notes = new ArrayList<>();
    try (var _ = pool.addHook(new Notes("", notes))) {
      assertThatThrownBy(() -> pool.allocate(2 * PAGE))
          .isInstanceOf(OutOfDeviceMemoryException.class);
      assertThat(notes).filteredOn(note -> note.equals("alloc<4194304")).hasSizeGreaterThan(1);
      assertThat(notes).filteredOn(note -> note.equals("alloc>4194304 at 0")).hasSizeGreaterThan(1);
    }
  }

  @CudaTest
  void allocationOfNoBytes_isSeenWithAddressZero(MemoryPool pool) {
    List<String> notes = new ArrayList<>();
    try (var _ = pool.addHook(new Notes("", notes))) {
      pool.allocate(0).close();
      assertThat(notes).containsExactly("malloc<0/0", "malloc>0 at 0");
    }
  }

  @CudaTest
  void exceptionBefore_stopsTheOperation_andLosesNothing(MemoryPool pool) {
    MemoryHook refuses =
        new MemoryHook() {
          @Override
          public void mallocPreprocess(Block block) {
            throw new UnsupportedOperationException("no more");
          }
        };
    try (var _ = pool.addHook(refuses)) {
      assertThatThrownBy(() -> pool.allocate(UNIT))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessage("no more");
    }
    assertThat(pool.totalBytes()).isZero();
    assertThat(pool.stats().allocations()).isZero();
    pool.allocate(UNIT).close();
  }

  @CudaTest
  void exceptionAfterAnAllocationThatFailed_isTheHooksOwn(MemoryPool pool) {
    pool.setLimit(MemoryLimit.ofBytes(UNIT));
    try (var _ = pool.addHook(throwingAt(3))) {
      assertThatThrownBy(() -> pool.allocate(2 * UNIT))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessage("hook");
    }
    pool.allocate(UNIT).close();
  }

  /** Every point at which a hook can throw; whatever was given out or taken back is accounted. */
  @CudaTest
  void exceptionOfAnyHookMethod_losesNoMemory(Subject subject) {
    Cuda cuda = subject.cuda();
    for (int point = 0; point < 6; point++) {
      try (MemoryPool pool = new MemoryPool(cuda)) {
        try (var _ = pool.addHook(throwingAt(point))) {
          try (Buffer buffer = pool.allocate(UNIT)) {
            assertThat(buffer.byteSize()).isEqualTo(UNIT);
          } catch (UnsupportedOperationException e) {
            assertThat(e).hasMessage("hook");
          }
        }
        assertThat(pool.usedBytes()).as("hook method %d", point).isZero();
        assertThat(pool.stats().usedBlocks()).isZero();
        pool.freeAllBlocks();
        assertThat(pool.totalBytes()).as("hook method %d", point).isZero();
        if (subject.isSimulated()) {
          assertThat(subject.simulator().liveAllocations()).as("hook method %d", point).isZero();
        }
      }
    }
  }

  private static MemoryHook throwingAt(int point) {
    return new MemoryHook() {
      private void at(int method) {
        if (method == point) {
          throw new UnsupportedOperationException("hook");
        }
      }

      @Override
      public void allocPreprocess(Growth growth) {
        at(0);
      }

      @Override
      public void allocPostprocess(Growth growth) {
        at(1);
      }

      @Override
      public void mallocPreprocess(Block block) {
        at(2);
      }

      @Override
      public void mallocPostprocess(Block block) {
        at(3);
      }

      @Override
      public void freePreprocess(Block block) {
        at(4);
      }

      @Override
      public void freePostprocess(Block block) {
        at(5);
      }
    };
  }

  @CudaTest
  void hookOfOneThread_doesNotSeeOthers_andHookOfAllDoes(MemoryPool pool)
      throws InterruptedException {
    List<String> mine = new ArrayList<>();
    List<String> all = new ArrayList<>();
    try (var _ = pool.addHook(new Notes("", all));
        var _ = pool.useHook(new Notes("", mine))) {
      Thread other = Thread.ofPlatform().start(() -> pool.allocate(1).close());
      other.join();
      assertThat(mine).isEmpty();
      assertThat(all).hasSize(6);
      pool.allocate(1).close();
      assertThat(mine).hasSize(4);
    }
  }

  @CudaTest
  void sameHookTwice_isRefused_andCanComeBack(MemoryPool pool) {
    Notes hook = new Notes("", new ArrayList<>());
    try (var _ = pool.addHook(hook)) {
      assertThatThrownBy(() -> pool.addHook(hook))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("registered already");
    }
    var again = pool.addHook(hook);
    again.close();
    again.close();
    pool.allocate(1).close();
    assertThat(hook.notes).isEmpty();
  }

  @CudaTest
  void sameHookTwice_onOneThread_isRefused_andMaySeeAllThreadsBesides(MemoryPool pool) {
    Notes hook = new Notes("", new ArrayList<>());
    try (var _ = pool.useHook(hook)) {
      assertThatThrownBy(() -> pool.useHook(hook))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("registered already");
      pool.allocate(1).close();
      assertThat(hook.notes).hasSize(6);
      pool.addHook(hook).close();
      pool.allocate(1).close();
      assertThat(hook.notes).hasSize(10);
    }
  }

  /** Each of the calls before and after, and there is no memory that could be given back. */
  @CudaTest
  void hookThatThrowsAsAnAllocationFails_isWhatIsThrown(Cuda cuda) {
    try (MemoryPool pool = new MemoryPool(cuda);
        MemoryPool limited = new MemoryPool(cuda);
        ElasticMemoryPool elastic = new ElasticMemoryPool(cuda)) {
      limited.setLimit(MemoryLimit.ofBytes(UNIT));
      for (int point = 0; point <= 3; point++) {
        int at = point;
        Map<MemoryResource, Supplier<Registration>> pools =
            Map.of(
                pool, () -> pool.addHook(throwingAt(at)),
                limited, () -> limited.addHook(throwingAt(at)),
                elastic, () -> elastic.addHook(throwingAt(at)));
        pools.forEach((each, add) -> {
          if (at < 2 && each != pool) {
            return; // the driver is not asked
          }
          try (var _ = add.get()) {
            assertThatThrownBy(() -> each.allocate(1L << 48, cuda.currentStream()))
                .isInstanceOf(UnsupportedOperationException.class)
                .hasMessage("hook");
          }
        });
      }
      assertThat(pool.totalBytes() + limited.totalBytes() + elastic.totalBytes()).isZero();
      pool.assertConsistent();
      elastic.assertConsistent();
    }
  }

  @CudaTest
  void hookOfAnElasticPool_isToldWhereItGrew(Cuda cuda) {
    List<String> notes = new ArrayList<>();
    try (ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
        var _ = pool.addHook(new Notes("", notes))) {
      pool.allocate(PAGE).close();
    }
    assertThat(notes)
        .anyMatch(note -> note.startsWith("alloc>"))
        .noneMatch(note -> note.endsWith(" at 0"));
  }
}
