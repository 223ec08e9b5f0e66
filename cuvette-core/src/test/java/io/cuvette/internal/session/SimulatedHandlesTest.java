package io.cuvette.internal.session;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import io.cuvette.EngineMemory;
import io.cuvette.driver.IpcCalls;
import io.cuvette.instrument.TracingDriver;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** A simulated driver checks handles by itself. */
class SimulatedHandlesTest {
  @Test
  void handles_areHandedOn_andNothingIsMadeToCompareThemWith() {
    List<String> calls = new CopyOnWriteArrayList<>();
    try (Cuda cuda =
        Cuda.open(
            CudaOptions.simulated()
                .withDecorator(
                    driver -> TracingDriver.of(driver, call -> calls.add(call.call()))))) {
      Device device = EngineMemory.of(cuda.allocate(1)).on();
      PeerHandles handles = new PeerHandles(_ -> calls.add("closed"));
      calls.clear();
      for (int content : new int[] {0, 1, -1}) {
        byte[] handle = new byte[IpcCalls.HANDLE_BYTES];
        Arrays.fill(handle, (byte) content);
        assertThat(handles.range(device, handle)).isNull();
        assertThat(handles.checkedPointer(device, 1, handle)).isSameAs(handle);
        assertThat(handles.checkedPlain(device, handle)).isSameAs(handle);
        assertThat(handles.checkedEvent(device, handle)).isSameAs(handle);
      }
      assertThat(calls).isEmpty();
    }
  }
}
