package io.cuvette.internal.paged;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.EngineMemory;
import io.cuvette.driver.DescriptorCalls;
import io.cuvette.internal.channel.PoolHandle;
import java.lang.reflect.Proxy;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Descriptors of several pages are closed together. */
class PageFilesTest {
  private final DescriptorCalls calls = EngineMemory.descriptors();

  /** The same calls, of which none closes anything. */
  private final DescriptorCalls failing =
      (DescriptorCalls)
          Proxy.newProxyInstance(
              DescriptorCalls.class.getClassLoader(),
              new Class<?>[] {DescriptorCalls.class},
              (_, method, arguments) -> {
                if (method.getName().equals("close")) {
                  throw new IllegalStateException("on purpose");
                }
                return method.invoke(calls, arguments);
              });

  @Test
  void descriptorThatCannotBeClosed_isReported_onceTheOthersAreClosed() {
    PoolHandle bad = new PoolHandle(failing, calls.memoryFile("page", 0), null);
    PoolHandle good = new PoolHandle(calls, calls.memoryFile("page", 0), null);
    PageFiles files = new PageFiles(List.of(bad, good), 512, 512);
    assertThatThrownBy(files::close).hasMessage("on purpose");
    assertThat(good.isClosed()).isTrue();
  }

  private PageFiles files(List<PoolHandle> of, long... sizes) {
    return new PageFiles(of.stream().map(PoolHandle::duplicate).toList(), sizes);
  }

  @Test
  void pages_areTheSameInTheSameOrderAndOfTheSameSizes() {
    PoolHandle one = new PoolHandle(calls, calls.memoryFile("page", 0), null);
    PoolHandle two = new PoolHandle(calls, calls.memoryFile("page", 0), null);
    PageFiles both = files(List.of(one, two), 512, 1024);
    assertThat(both.allBytes()).isEqualTo(1536);
    assertThat(both.count()).isEqualTo(2);
    PageFiles copy = both.duplicate();
    List<PageFiles> others =
        List.of(
            files(List.of(two, one), 512, 1024),
            files(List.of(one, one), 512, 1024),
            files(List.of(two, two), 512, 1024),
            files(List.of(one, two), 1024, 512),
            files(List.of(one, two), 512, 512),
            files(List.of(one), 512),
            files(List.of(one), 1536),
            files(List.of(one, two, one), 512, 1024, 512));
    assertThat(both.isSame(copy)).isTrue();
    assertThat(copy.isSame(both)).isTrue();
    for (PageFiles other : others) {
      assertThat(both.isSame(other)).isFalse();
      assertThat(other.isSame(both)).isFalse();
      assertThat(other.isSame(other)).isTrue();
      other.close();
    }
    both.close();
    assertThat(both.isClosed()).isTrue();
    assertThat(copy.isClosed()).as("descriptors of its own").isFalse();
    copy.close();
    one.close();
    two.close();
  }
}
