package io.cuvette.testkit.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.AllocationHandle;
import io.cuvette.Cuda;
import io.cuvette.CudaEvent;
import io.cuvette.CudaOptions;
import io.cuvette.DeviceBuffer;
import io.cuvette.DeviceMemoryResource;
import io.cuvette.DeviceMemoryResourceOptions;
import io.cuvette.EventOptions;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.Subject;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/**
 * The two programs of docs/guide/sharing.md, one of them in Python. Skipped where there is no
 * Python, or none with cuda.core.
 */
@EnabledOnOs(OS.LINUX)
class SharingWithPythonTest {
  private static final Duration PATIENCE = Duration.ofSeconds(60);

  @TempDir Path folder;

  private Path script() throws IOException {
    Path script = folder.resolve("sharing.py");
    try (InputStream text = SharingWithPythonTest.class.getResourceAsStream("sharing.py")) {
      return Files.write(script, text.readAllBytes());
    }
  }

  /** Starts the script; its errors are this JVM's. */
  private Process start(String what, Path socket, int device) throws IOException {
    ProcessBuilder python =
        new ProcessBuilder("python3", script().toString(), what, socket.toString())
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    python.environment().put("DEVICE", Integer.toString(device));
    return python.start();
  }

  private static void requirePython(String statement, String missing) throws Exception {
    boolean isThere;
    try {
      Process process =
          new ProcessBuilder("python3", "-c", statement)
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start();
      isThere = process.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS) && process.exitValue() == 0;
      process.destroyForcibly();
    } catch (IOException e) {
      isThere = false;
    }
    assumeTrue(isThere, missing);
  }

  private static void finish(Process process) throws Exception {
    try {
      assertThat(process.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).isZero();
    } finally {
      process.destroyForcibly();
    }
  }

  @Test
  void scriptWithoutArguments_printsItsUsage() throws Exception {
    requirePython("import socket, uuid", "no Python on the path");
    Process python =
        new ProcessBuilder("python3", script().toString()).redirectErrorStream(true).start();
    String said = new String(python.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(said).isEqualTo("usage: sharing.py produce|consume|echo SOCKET\n");
    assertThat(python.waitFor()).isEqualTo(2);
  }

  /** Messages, the handle and both descriptors, without CUDA on the other side. */
  @Test
  void python_readsAndWritesWhatIsSent() throws Exception {
    requirePython("import socket, uuid", "no Python on the path");
    Path socket = folder.resolve("echo");
    try (Cuda cuda = Cuda.open(CudaOptions.simulated());
        DeviceMemoryResource resource =
            new DeviceMemoryResource(
                cuda.device(0), DeviceMemoryResourceOptions.DEFAULTS.withIpcEnabled(true));
        DeviceBuffer buffer = resource.allocate(4096, cuda.currentStream());
        CudaEvent event =
            cuda.device(0).createEvent(EventOptions.ORDER_ONLY.withInterprocess(true));
        IpcListener listener = IpcListener.open(socket)) {
      Process python = start("echo", socket, 0);
      try (IpcChannel channel = listener.accept(PATIENCE)) {
        channel.send(resource.allocationHandle());
        try (AllocationHandle back = channel.receiveAllocationHandle(PATIENCE)) {
          assertThat(back.uuid()).isEqualTo(resource.uuid());
          assertThat(back.descriptor()).isNotEqualTo(resource.allocationHandle().descriptor());
        }
        channel.send(buffer.descriptor());
        assertThat(channel.receiveBufferDescriptor(PATIENCE)).isEqualTo(buffer.descriptor());
        channel.send(event.descriptor());
        assertThat(channel.receiveEventDescriptor(PATIENCE)).isEqualTo(event.descriptor());
        channel.send(new byte[0]);
        try (IpcChannel.Message end = channel.receiveMessage(PATIENCE)) {
          assertThat(new String(end.bytes(), StandardCharsets.UTF_8)).isEqualTo("done");
        }
      } finally {
        finish(python);
      }
    }
  }

  @CudaTest
  void python_writesOurMemory(Subject subject) throws Exception {
    requireCudaCore(subject.cuda());
    Path socket = folder.resolve("ours");
    Process python = start("consume", socket, subject.cuda().currentDevice().id());
    try {
      byte[] back = SharingProducer.produce(subject.cuda(), socket);
      assertThat(back[0]).isEqualTo((byte) 8);
      assertThat(back[999]).isEqualTo((byte) 8);
      assertThat(back[1000]).isEqualTo((byte) 7);
    } finally {
      finish(python);
    }
  }

  @CudaTest
  void pythonsMemory_isWrittenByUs(Subject subject) throws Exception {
    requireCudaCore(subject.cuda());
    Path socket = folder.resolve("pythons");
    Process python = start("produce", socket, subject.cuda().currentDevice().id());
    try (BufferedReader says = python.inputReader(StandardCharsets.UTF_8)) {
      assertThat(says.readLine()).isEqualTo("listening");
      SharingConsumer.consume(subject.cuda(), socket);
      assertThat(says.readLine()).isEqualTo("produced");
    } finally {
      finish(python);
    }
  }

  private static void requireCudaCore(Cuda cuda) throws Exception {
    requirePython("import cuda.core", "no Python with cuda.core");
    assumeTrue(!cuda.isSimulated(), "Python has no simulated device");
  }
}
