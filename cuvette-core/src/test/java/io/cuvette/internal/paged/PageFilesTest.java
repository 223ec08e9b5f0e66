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
}
