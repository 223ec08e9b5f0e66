package io.cuvette.instrument;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Each call that frees, made to fail once: what it was to free is freed all the same. */
class RefusedFreesTest {
  private final List<String> made = new ArrayList<>();
  private final CudaDriver driver = DriverProxy.of(this::note);

  private @Nullable Object note(Method method, Object[] arguments) {
    if (method.getReturnType() == void.class) {
      made.add(method.getName());
      return null;
    }
    return method.getReturnType() == int.class ? (Object) 0 : "any"; // there are no devices
  }

  private static Method method(String name) {
    return DriverProxy.methods().stream()
        .filter(method -> method.getName().equals(name))
        .findFirst()
        .orElseThrow();
  }

  private static Object[] arguments(Method method) {
    List<Object> values = new ArrayList<>();
    for (Class<?> type : method.getParameterTypes()) {
      values.add(Samples.of(type, values.size() + 1));
    }
    return values.toArray();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "memFree",
        "memFreeAsync",
        "memFreeHost",
        "memHostUnregister",
        "streamDestroy",
        "eventDestroy",
        "ipcCloseMemHandle",
        "graphDestroy",
        "memPoolDestroy",
        "libraryUnload",
        "memRelease",
        "memUnmap",
        "memAddressFree",
        "callFree",
        "mathHandleDestroy"
      })
  void callThatFrees_isOwed_untilItIsMade(String name) throws Throwable {
    Method method = method(name);
    Object[] arguments = arguments(method);
    Faults faults = Faults.at(driver, 1).only(name);
    assertThatThrownBy(() -> DriverProxy.forward(faults.driver(), method, arguments))
        .isInstanceOf(CudaException.class);
    assertThat(made).isEmpty();
    assertThat(faults.freeRefused()).singleElement().asString().startsWith(name + "(");
    assertThat(made).containsExactly(name.equals("memFreeAsync") ? "memFree" : name);
    assertThat(faults.freeRefused()).isEmpty();

    Faults again = Faults.at(driver, 1).only(name);
    assertThatThrownBy(() -> DriverProxy.forward(again.driver(), method, arguments))
        .isInstanceOf(CudaException.class);
    assertThat(DriverProxy.forward(again.driver(), method, arguments)).isNull();
    assertThat(again.freeRefused()).as("it was freed since").isEmpty();
  }
}
