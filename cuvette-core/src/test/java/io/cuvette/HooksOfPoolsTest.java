package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.InstanceOfAssertFactories.THROWABLE;

import io.cuvette.driver.BlockListener;
import io.cuvette.instrument.ForwardingDriver;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Hooks of one pool that use others: each pool's are called for its own blocks, and not within. */
@Timeout(60)
class HooksOfPoolsTest {
  private static final int BYTES = 4096;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated());
  private final CudaStream stream = cuda.device(0).createStream();
  private final List<String> notes = new ArrayList<>();

  @AfterEach
  void close() {
    cuda.close();
  }

  /** Notes each call, and does something in one kind of them. */
  private final class Noting implements MemoryHook {
    private final String name;
    private final String when;
    private final Runnable what;

    Noting(String name, String when, Runnable what) {
      this.name = name;
      this.when = when;
      this.what = what;
    }

    private void note(String call) {
      notes.add(name + " " + call);
      if (call.equals(when)) {
        what.run();
      }
    }

    @Override
    public void mallocPreprocess(Block block) {
      note("malloc<");
    }

    @Override
    public void mallocPostprocess(Block block) {
      note("malloc>");
    }

    @Override
    public void freePreprocess(Block block) {
      note("free<");
    }

    @Override
    public void freePostprocess(Block block) {
      note("free>");
    }
  }

  /** Either kind of pool with hooks, by its face. */
  private record Hooked(MemoryResource resource, Function<MemoryHook, Registration> add) {}

  private List<Supplier<Hooked>> kinds() {
    return List.of(
        () -> {
          MemoryPool pool = new MemoryPool(cuda);
          return new Hooked(pool, pool::addHook);
        },
        () -> {
          ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
          return new Hooked(pool, pool::addHook);
        });
  }

  /** Its own hooks see that, as they would anywhere else. */
  @Test
  void hookThatUsesAnotherPool_isSeenByTheHooksOfThat() {
    for (Supplier<Hooked> outer : kinds()) {
      for (Supplier<Hooked> inner : kinds()) {
        for (String when : List.of("malloc<", "malloc>", "free<", "free>")) {
          notes.clear();
          Hooked of = outer.get();
          Hooked other = inner.get();
          Registration _ = other.add.apply(new Noting("inner", "", () -> {}));
          Registration _ =
              of.add.apply(
                  new Noting("outer", when, () -> other.resource.allocate(BYTES, stream).close()));
          of.resource.allocate(BYTES, stream).close();
          List<String> expected = new ArrayList<>();
          for (String call : List.of("malloc<", "malloc>", "free<", "free>")) {
            expected.add("outer " + call);
            if (call.equals(when)) {
              List.of("malloc<", "malloc>", "free<", "free>")
                  .forEach(each -> expected.add("inner " + each));
            }
          }
          assertThat(notes).isEqualTo(expected);
        }
      }
    }
  }

  /** It could go on without end; a block that it frees is freed without hooks. */
  @Test
  void hookThatUsesItsOwnPool_isRefused_alsoBehindAnother_andMayFree() {
    for (Supplier<Hooked> outer : kinds()) {
      for (Supplier<Hooked> inner : kinds()) {
        notes.clear();
        Hooked of = outer.get();
        Hooked other = inner.get();
        Buffer before = of.resource.allocate(BYTES, stream);
        List<@Nullable Throwable> refused = new ArrayList<>();
        Registration _ =
            other.add.apply(
                new Noting(
                    "inner",
                    "malloc<",
                    () -> {
                      refused.add(catchAll(() -> of.resource.allocate(BYTES, stream)));
                      before.close();
                    }));
        Registration _ =
            of.add.apply(
                new Noting(
                    "outer",
                    "malloc<",
                    () -> {
                      refused.add(catchAll(() -> of.resource.allocate(BYTES, stream)));
                      other.resource.allocate(BYTES, stream).close();
                    }));
        of.resource.allocate(BYTES, stream).close();
        assertThat(before.isClosed()).isTrue();
        assertThat(refused)
            .hasSize(2)
            .allSatisfy(each ->
                assertThat(each)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("re-entrant allocation"));
        assertThat(notes)
            .containsExactly(
                "outer malloc<",
                "inner malloc<",
                "inner malloc>",
                "inner free<",
                "inner free>",
                "outer malloc>",
                "outer free<",
                "outer free>");
      }
    }
  }

  /** Hooks hear of it no more than of one that nothing refuses. */
  @Test
  void freeInsideAHook_thatWhoeverWatchesRefuses_isMade_andToldAsItIs() {
    AtomicBoolean refuses = new AtomicBoolean();
    BlockListener listener =
        (BlockListener)
            Proxy.newProxyInstance(
                BlockListener.class.getClassLoader(),
                new Class<?>[] {BlockListener.class},
                (_, method, _) -> {
                  if (refuses.get() && method.getName().equals("blockFreed")) {
                    throw new IllegalStateException("refused on purpose");
                  }
                  return null;
                });
    CudaOptions watched =
        CudaOptions.simulated()
            .withDecorator(driver ->
                new ForwardingDriver(driver) {
                  @Override
                  public BlockListener blockListener() {
                    return listener;
                  }
                });
    try (Cuda own = Cuda.open(watched)) {
      MemoryPool pool = new MemoryPool(own);
      Buffer before = pool.allocate(BYTES);
      List<@Nullable Throwable> told = new ArrayList<>();
      Registration _ =
          pool.addHook(
              new Noting(
                  "own",
                  "malloc>",
                  () -> {
                    refuses.set(true);
                    told.add(catchAll(before::close));
                    refuses.set(false);
                  }));
      pool.allocate(BYTES).close();
      assertThat(told).singleElement().asInstanceOf(THROWABLE).hasMessage("refused on purpose");
      assertThat(before.isClosed()).isTrue();
      assertThat(pool.usedBytes()).isZero();
      assertThat(notes).containsExactly("own malloc<", "own malloc>", "own free<", "own free>");
    }
  }

  /** It is no hook: what it closes is told, and it may allocate what the pool has. */
  @Test
  void pressureListener_isNotInsideAHookOfItsPool() {
    int bytes = 16 << 20;
    for (Supplier<Hooked> kind : kinds()) {
      Hooked of = kind.get();
      Registration _ = of.add.apply(new Noting("own", "", () -> {}));
      Buffer before = of.resource.allocate(bytes, stream);
      List<@Nullable Throwable> refused = new ArrayList<>();
      PressureListener closing =
          (_, _) -> {
            before.close();
            refused.add(catchAll(() -> of.resource.allocate(BYTES, stream).close()));
            return bytes;
          };
      if (of.resource instanceof MemoryPool pool) {
        pool.setLimit(MemoryLimit.ofBytes(bytes));
        Registration _ = pool.addPressureListener(closing);
      } else {
        ElasticMemoryPool pool = (ElasticMemoryPool) of.resource;
        pool.setLimit(MemoryLimit.ofBytes(bytes));
        Registration _ = pool.addPressureListener(closing);
      }
      notes.clear();
      of.resource.allocate(bytes, stream).close();
      assertThat(refused).containsExactly((Throwable) null);
      List<String> block = List.of("malloc<", "malloc>", "free<", "free>");
      List<String> expected = new ArrayList<>(List.of("malloc<", "free<", "free>"));
      expected.addAll(block);
      expected.addAll(block.subList(1, 4));
      assertThat(notes).isEqualTo(expected.stream().map(call -> "own " + call).toList());
    }
  }

  private static @Nullable Throwable catchAll(Runnable call) {
    try {
      call.run();
      return null;
    } catch (RuntimeException e) {
      return e;
    }
  }
}
