package io.cuvette.testkit.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.AsyncMemoryPool;
import io.cuvette.AsyncPoolChoice;
import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaStream;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.ElasticMemoryPool;
import io.cuvette.GraphDefinition;
import io.cuvette.GraphMemoryResource;
import io.cuvette.GrowableBuffer;
import io.cuvette.MemoryPool;
import io.cuvette.MemoryResource;
import io.cuvette.PinnedMemoryPool;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.IntStream;

/** What every resource refuses, also for no bytes: nothing is taken then. */
class ResourceRefusalsTest {
  private static final Set<String> OF_NONE =
      Set.of("direct", "managed", "async", "default", "async pool", "graph");

  /** Each kind of resource, on a Cuda. */
  private static Map<String, Function<Cuda, MemoryResource>> resources() {
    Map<String, Function<Cuda, MemoryResource>> all = new LinkedHashMap<>();
    all.put("direct", _ -> MemoryResource.direct());
    all.put("managed", _ -> MemoryResource.managed());
    all.put("async", _ -> MemoryResource.async());
    all.put("default", Cuda::defaultMemoryPool);
    all.put("caching", MemoryPool::new);
    all.put("elastic", ElasticMemoryPool::new);
    all.put("async pool", cuda -> new AsyncMemoryPool(cuda, AsyncPoolChoice.ofNew(0)));
    all.put("current pool", AsyncMemoryPool::new);
    all.put("device", cuda -> new DeviceMemoryResource(cuda.device(0)));
    all.put(
        "own device",
        cuda -> new DeviceMemoryResource(cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS));
    all.put("graph", cuda -> new GraphMemoryResource(cuda.device(0)));
    return all;
  }

  @CudaTest(tidy = false)
  void negativeSize_isRefused(Cuda cuda, CudaStream stream) {
    resources()
        .forEach((name, make) -> {
          MemoryResource resource = make.apply(cuda);
          for (long bytes : new long[] {-1, Long.MIN_VALUE}) {
            assertThatThrownBy(() -> resource.allocate(bytes, stream))
                .as(name)
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("bytes: " + bytes);
          }
        });
  }

  @CudaTest(tidy = false)
  void closedStream_isRefused(Cuda cuda) {
    CudaStream closed = cuda.device(0).createStream();
    closed.close();
    resources()
        .forEach((name, make) -> {
          MemoryResource resource = make.apply(cuda);
          for (long bytes : new long[] {0, 1}) {
            assertThatThrownBy(() -> resource.allocate(bytes, closed))
                .as("%s, %d", name, bytes)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
          }
        });
  }

  /** Those that are not of one Cuda take the memory from that of the stream. */
  @CudaTest(tidy = false)
  void streamOfAnotherCuda_isRefused(Cuda cuda, Subject subject) {
    CudaStream other = subject.open(options -> options).device(0).createStream();
    resources()
        .forEach((name, make) -> {
          MemoryResource resource = make.apply(cuda);
          for (long bytes : new long[] {0, 1}) {
            if (List.of("direct", "managed", "async").contains(name)) {
              try (Buffer ofOther = resource.allocate(bytes, other)) {
                assertThat(ofOther.device()).isEqualTo(other.device());
              }
            } else {
              assertThatThrownBy(() -> resource.allocate(bytes, other))
                  .as("%s, %d", name, bytes)
                  .isInstanceOfAny(IllegalArgumentException.class, IllegalStateException.class);
            }
          }
        });
  }

  @CudaTest(tidy = false)
  void closedCuda_givesNothing(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    CudaStream stream = cuda.device(0).createStream();
    Map<String, MemoryResource> made = new LinkedHashMap<>();
    resources().forEach((name, make) -> made.put(name, make.apply(cuda)));
    GrowableBuffer growable = cuda.device(0).growable(1 << 20);
    cuda.close();
    made.forEach((name, resource) -> {
      for (long bytes : new long[] {0, 1}) {
        assertThatThrownBy(() -> resource.allocate(bytes, stream))
            .as("%s, %d", name, bytes)
            .isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("closed");
      }
    });
    assertThatThrownBy(() -> growable.grow(1)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> cuda.directPinned().allocate(0))
        .isInstanceOf(IllegalStateException.class);
  }

  /**
   * But for those that are of no Cuda, and those that ask the driver for a pool when it is used.
   */
  @CudaTest(tidy = false)
  void closedCuda_isNothingToMakeOneOn(Subject subject) {
    Cuda cuda = subject.open(options -> options);
    cuda.close();
    resources()
        .forEach((name, make) -> {
          if (!OF_NONE.contains(name)) {
            assertThatThrownBy(() -> make.apply(cuda))
                .as(name)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("closed");
          }
        });
    for (AsyncPoolChoice choice :
        List.of(
            AsyncPoolChoice.ofDefault(),
            AsyncPoolChoice.ofCurrent(),
            AsyncPoolChoice.ofHandle(1))) {
      List<AsyncPoolChoice> choices =
          IntStream.range(0, cuda.deviceCount())
              .mapToObj(device -> device == 0 ? choice : AsyncPoolChoice.ofDefault())
              .toList();
      assertThatThrownBy(() -> new AsyncMemoryPool(cuda, choices))
          .as("%s", choice)
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("closed");
    }
    assertThatThrownBy(() -> new PinnedMemoryPool(cuda)).isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> new GraphDefinition(cuda.device(0)))
        .isInstanceOf(IllegalStateException.class);
    assertThatThrownBy(() -> cuda.device(0).growable(1)).isInstanceOf(IllegalStateException.class);
  }
}
