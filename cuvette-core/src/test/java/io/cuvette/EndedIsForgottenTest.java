package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.MathLibrary;
import io.cuvette.internal.lifetime.Children;
import java.lang.foreign.Arena;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whatever was made and closed: its Cuda has nothing left to end, and lists nothing as open. */
@Timeout(60)
class EndedIsForgottenTest {
  private static final int BYTES = 4096;
  private static final int ROUNDS = 12;

  private final Cuda cuda = Cuda.open(CudaOptions.simulated().withLeakLevel(LeakLevel.FULL));
  private final CudaDevice device = cuda.device(0);
  private final CudaStream stream = device.createStream(StreamOptions.NON_BLOCKING);
  private final CudaEvent shared = device.createEvent(new EventOptions(false, false, true));

  @AfterEach
  void close() {
    cuda.close();
  }

  private static CudaGraph captured(CudaStream stream, MemoryPool pool) {
    return stream.capture(() -> pool.allocate(BYTES, stream).close());
  }

  private AutoCloseable used(MemoryResource resource, AutoCloseable end) {
    resource.allocate(BYTES, stream).close();
    resource.allocate(BYTES, device.nullStream()).close();
    stream.synchronize();
    device.nullStream().synchronize();
    return end;
  }

  private AutoCloseable registered() {
    return cuda.registerHost(Arena.ofAuto().allocate(BYTES));
  }

  private AutoCloseable graph() {
    MemoryPool pool = new MemoryPool(cuda);
    CudaGraph graph = captured(stream, pool);
    CudaGraphExec executable = graph.instantiate();
    executable.launch(stream);
    stream.synchronize();
    return () -> {
      executable.close();
      graph.close();
      pool.close();
    };
  }

  private AutoCloseable memoryOfAGraph() {
    GraphMemoryResource resource = new GraphMemoryResource(device);
    return stream.capture(() -> resource.allocate(BYTES, stream).close());
  }

  private AutoCloseable definition() {
    GraphDefinition definition = new GraphDefinition(device);
    CudaEvent event = device.createEvent();
    GraphNode _ = definition.root().record(event);
    return () -> {
      definition.close();
      event.close();
    };
  }

  /** It stays for the program, which frees it behind the launch. */
  private AutoCloseable memoryThatAGraphLeft() {
    GraphMemoryResource resource = new GraphMemoryResource(device);
    List<Buffer> left = new ArrayList<>();
    CudaGraph graph = stream.capture(() -> left.add(resource.allocate(BYTES, stream)));
    CudaGraphExec executable = graph.instantiate();
    executable.launch(stream);
    return () -> {
      left.forEach(Buffer::close);
      executable.close();
      graph.close();
    };
  }

  private AutoCloseable pinnedPool() {
    PinnedMemoryPool pool = new PinnedMemoryPool(cuda);
    pool.allocate(BYTES).close();
    return pool;
  }

  private AutoCloseable growable() {
    GrowableBuffer buffer = device.growable(4L << 20);
    buffer.grow(2L << 20);
    return buffer;
  }

  private Map<String, Function<EndedIsForgottenTest, AutoCloseable>> everything() {
    Map<String, Function<EndedIsForgottenTest, AutoCloseable>> all = new LinkedHashMap<>();
    all.put("event", _ -> device.createEvent());
    all.put("event of another process", _ -> device.createEvent(shared.options()));
    all.put("record", _ -> stream.record());
    all.put(
        "wait",
        _ -> {
          stream.waitFor(device.nullStream());
          return () -> {};
        });
    all.put("stream", _ -> device.createStream());
    all.put("wrapped stream", _ -> device.wrapStream(stream.handle(), null));
    all.put("pooled", _ -> cuda.allocate(BYTES));
    all.put("direct", _ -> MemoryResource.direct().allocate(BYTES, stream));
    all.put("managed", _ -> MemoryResource.managed().allocate(BYTES, stream));
    all.put("async", _ -> MemoryResource.async().allocate(BYTES, stream));
    all.put("pinned", _ -> cuda.allocatePinned(BYTES));
    all.put("direct pinned", _ -> cuda.directPinned().allocate(BYTES));
    all.put("registered", EndedIsForgottenTest::registered);
    all.put("growable", EndedIsForgottenTest::growable);
    all.put(
        "wrapped",
        _ -> {
          Buffer of = MemoryResource.direct().allocate(BYTES, stream);
          Buffer wrapped = device.wrap(of.address(), BYTES, of);
          return () -> {
            wrapped.close();
            of.close();
          };
        });
    all.put(
        "adopted",
        _ -> {
          Buffer of = MemoryResource.direct().allocate(BYTES, stream);
          return device.adopt(of.address(), BYTES, of::close);
        });
    putPools(all);
    all.put("graph", EndedIsForgottenTest::graph);
    all.put("memory of a graph", EndedIsForgottenTest::memoryOfAGraph);
    all.put("memory that a graph left", EndedIsForgottenTest::memoryThatAGraphLeft);
    all.put("definition", EndedIsForgottenTest::definition);
    all.put("graph memory", _ -> device.createGraphMemory());
    all.put("library", _ -> device.useLibrary(MathLibrary.CUBLAS, stream, 0));
    return all;
  }

  private void putPools(Map<String, Function<EndedIsForgottenTest, AutoCloseable>> all) {
    all.put(
        "pool",
        _ -> {
          MemoryPool pool = new MemoryPool(cuda);
          return used(pool, pool);
        });
    all.put(
        "elastic pool",
        _ -> {
          ElasticMemoryPool pool = new ElasticMemoryPool(cuda);
          return used(pool, pool);
        });
    all.put(
        "async pool",
        _ -> {
          AsyncMemoryPool pool = new AsyncMemoryPool(cuda);
          return used(pool, pool);
        });
    all.put("pinned pool", EndedIsForgottenTest::pinnedPool);
    all.put(
        "device resource",
        _ -> {
          var pool = new DeviceMemoryResource(device, DeviceMemoryResourceOptions.DEFAULTS);
          return used(pool, pool);
        });
    all.put(
        "pinned resource",
        _ -> {
          var pool = new PinnedMemoryResource(cuda, PinnedMemoryResourceOptions.DEFAULTS);
          return used(pool, pool);
        });
    all.put(
        "managed resource",
        _ -> {
          var pool = new ManagedMemoryResource(cuda, ManagedMemoryResourceOptions.DEFAULTS);
          return used(pool, pool);
        });
  }

  private int open() throws ReflectiveOperationException {
    Field open = Children.class.getDeclaredField("open");
    open.setAccessible(true);
    return ((Map<?, ?>) open.get(cuda.session().children())).size();
  }

  /** The first of a kind may make what stays for the next, and marks of work come and go. */
  @Test
  void whatWasClosed_isNotAmongWhatTheCudaHasToEnd() throws Exception {
    for (var each : everything().entrySet()) {
      int children = 0;
      int objects = 0;
      for (int round = 0; round < ROUNDS; round++) {
        AutoCloseable made = each.getValue().apply(this);
        made.close();
        device.synchronize();
        if (round == 1) {
          children = open();
          objects = cuda.openObjects().size();
        }
      }
      assertThat(open()).as(each.getKey()).isLessThan(children + ROUNDS / 2);
      assertThat(cuda.openObjects()).as(each.getKey()).hasSizeLessThan(objects + ROUNDS / 2);
    }
  }

  /** Their ends were noted when they came, and nothing is closed twice. */
  @Test
  void whatIsOpen_endsWithTheCuda() throws Exception {
    List<AutoCloseable> made = new ArrayList<>(); // reachable: the collector takes back what is not
    for (var each : everything().values()) {
      made.add(each.apply(this));
    }
    cuda.close();
    assertThat(open()).isZero();
    for (AutoCloseable each : made) {
      each.close();
    }
  }
}
