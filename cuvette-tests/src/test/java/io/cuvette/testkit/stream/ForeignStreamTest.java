package io.cuvette.testkit.stream;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Buffer;
import io.cuvette.Cuda;
import io.cuvette.CudaDevice;
import io.cuvette.CudaStream;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.ScriptedDriver;
import io.cuvette.testkit.support.Bytes;

class ForeignStreamTest {

  @CudaTest
  void wrapper_isTheForeignStream_andKeepsItsOwner(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    long handle =
        driver.streams().streamCreateWithPriority(0, 1, cuda.device(0).priorityRange().greatest());
    Object owner = new Object();
    try (CudaStream stream = cuda.device(0).wrapStream(handle, owner);
        Buffer buffer = cuda.allocate(64, stream)) {
      assertThat(stream.handle()).isEqualTo(handle);
      assertThat(stream.owner()).isSameAs(owner);
      assertThat(stream.device()).isEqualTo(cuda.device(0));
      assertThat(stream.isNonBlocking()).isTrue();
      assertThat(stream.priority()).isEqualTo(cuda.device(0).priorityRange().greatest());
      buffer.fill((byte) 1, stream);
      stream.synchronize();
      assertThat(Bytes.of(buffer)).containsOnly(1);
    }
    driver.streams().streamSynchronize(0, handle);
    driver.streams().streamDestroy(0, handle);
  }

  @CudaTest
  void closedWrapper_destroysNothing_andRefusesMore(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    long handle = driver.streams().streamCreateWithPriority(0, 0, 0);
    CudaStream stream = cuda.device(0).wrapStream(handle, null);
    stream.close();
    stream.close();
    assertThat(stream.isClosed()).isTrue();
    assertThatThrownBy(stream::synchronize).isInstanceOf(IllegalStateException.class);
    driver.streams().streamSynchronize(0, handle);
    driver.streams().streamDestroy(0, handle);
  }

  @CudaTest
  void handlesZeroOneAndTwo_areTheBuiltInStreams(Cuda cuda) {
    CudaDevice device = cuda.device(0);
    assertThat(device.wrapStream(0, null)).isEqualTo(device.nullStream());
    assertThat(device.wrapStream(1, null)).isEqualTo(device.legacyStream());
    assertThat(device.wrapStream(2, null)).isEqualTo(device.perThreadStream());
  }

  @CudaTest(devices = 2)
  void streamOfAnotherDevice_isRefused(Cuda cuda) {
    CudaDriver driver = cuda.driver();
    long handle = driver.streams().streamCreateWithPriority(1, 0, 0);
    assertThatThrownBy(() -> cuda.device(0).wrapStream(handle, null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("belongs to device 1");
    driver.streams().streamDestroy(1, handle);
  }

  /** A real driver follows any pointer, so only the simulator can be asked. */
  @CudaTest(simulatedOnly = true)
  void handlesThatAreNone_areRefused(Cuda cuda) {
    for (long handle : new long[] {3, -1, Long.MAX_VALUE, 0x1234}) {
      assertThatThrownBy(() -> cuda.device(0).wrapStream(handle, null))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("INVALID_HANDLE");
    }
  }

  /** A driver gives the handle of a stream that was destroyed to the next one. */
  @CudaTest(simulatedOnly = true)
  void streamWithTheHandleOfOneThatIsGone_isAnother(Cuda cuda, ScriptedDriver script) {
    CudaDevice device = cuda.device(0);
    long handle = cuda.driver().streams().streamCreateWithPriority(0, 1, 0);
    try (CudaStream gone = device.wrapStream(handle, null)) {
      script.answer("streamGetId", _ -> 1L << 40);
      try (CudaStream next = device.wrapStream(handle, null);
          CudaStream same = device.wrapStream(handle, null)) {
        assertThat(next).isNotEqualTo(gone);
        assertThat(same).isEqualTo(next);
      }
      script.unscript("streamGetId");
      try (CudaStream again = device.wrapStream(handle, null)) {
        assertThat(again).isEqualTo(gone);
      }
    }
    cuda.driver().streams().streamDestroy(0, handle);
  }
}
