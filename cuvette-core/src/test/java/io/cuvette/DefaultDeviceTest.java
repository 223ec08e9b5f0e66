package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URL;
import java.net.URLClassLoader;
import org.junit.jupiter.api.Test;

/** Which devices are opened where the program names none. */
class DefaultDeviceTest {
  private static final String PROPERTY = "cuvette.device";

  private interface Body {
    void with(Class<?> cuda) throws Exception;
  }

  /** The library once more, in a process that has a device named. */
  private static void inAProcess(String device, Body body) throws Exception {
    URL classes = Cuda.class.getProtectionDomain().getCodeSource().getLocation();
    String before = System.getProperty(PROPERTY);
    System.setProperty(PROPERTY, device);
    try (URLClassLoader loader =
        new URLClassLoader(new URL[] {classes}, ClassLoader.getPlatformClassLoader())) {
      body.with(loader.loadClass(Cuda.class.getName()));
    } finally {
      if (before == null) {
        System.clearProperty(PROPERTY);
      } else {
        System.setProperty(PROPERTY, before);
      }
    }
  }

  @Test
  void devicesThatTheProcessNames_areOpened() throws Exception {
    inAProcess(
        "sim:devices=3",
        cuda -> {
          assertThat(cuda.getMethod("isAvailable").invoke(null)).isEqualTo(true);
          try (AutoCloseable open = (AutoCloseable) cuda.getMethod("open").invoke(null)) {
            assertThat(cuda.getMethod("deviceCount").invoke(open)).isEqualTo(3);
            assertThat(cuda.getMethod("isSimulated").invoke(open)).isEqualTo(true);
          }
        });
  }

  @Test
  void devicesThatNobodyHas_areNotThere() throws Exception {
    inAProcess(
        "nonsense",
        cuda -> assertThat(cuda.getMethod("isAvailable").invoke(null)).isEqualTo(false));
  }

  @Test
  void options_nameTheDevices() {
    assertThat(CudaOptions.gpu().device()).isEqualTo("gpu");
    assertThat(CudaOptions.simulated().device()).isEqualTo("sim");
    CudaOptions second = CudaOptions.gpu().withDevice("gpu:1");
    assertThat(second.device()).isEqualTo("gpu:1");
    assertThat(second.firstDevice(2)).isEqualTo(1);
    assertThat(CudaOptions.gpu().firstDevice(2)).isZero();
  }
}
