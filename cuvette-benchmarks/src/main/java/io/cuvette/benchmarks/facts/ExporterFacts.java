package io.cuvette.benchmarks.facts;

import io.cuvette.Buffer;
import io.cuvette.DriverPoolResource;
import io.cuvette.IpcChannel;
import io.cuvette.IpcListener;
import io.cuvette.benchmarks.facts.Ways.How;
import io.cuvette.benchmarks.facts.Ways.Kind;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Exports pools and buffers to a second process, which it starts and which writes its own facts to
 * the same output. Not thread-safe.
 */
final class ExporterFacts {
  static final Duration PATIENCE = Duration.ofSeconds(20);
  private static final byte WRITTEN = 0x11;
  private static final int ODD_BYTES = 1000;
  private static final String DEVICE = "cuvette.device";

  private final Ways ways;
  private final Recorder recorder;

  ExporterFacts(Ways ways, Recorder recorder) {
    this.ways = ways;
    this.recorder = recorder;
  }

  void run() {
    recorder.outcome("ipc.all", this::withImporter);
  }

  private void withImporter() throws IOException, InterruptedException {
    Path folder = Files.createTempDirectory("cuvette-facts");
    Path socket = folder.resolve("socket");
    Process importer = null;
    try (IpcListener listener = IpcListener.open(socket)) {
      importer = start(socket);
      try (IpcChannel channel = listener.accept(PATIENCE)) {
        for (Kind kind : List.of(Kind.DEVICE, Kind.PINNED)) {
          recorder.outcome("ipc." + kind + ".all", () -> export(kind, channel));
        }
      }
      importer.waitFor(PATIENCE.toSeconds(), TimeUnit.SECONDS);
    } finally {
      if (importer != null) {
        importer.destroyForcibly();
      }
      Files.deleteIfExists(socket);
      Files.delete(folder);
    }
  }

  private static Process start(Path socket) throws IOException {
    String java =
        System.getProperty("java.home") + File.separator + "bin" + File.separator + "java";
    List<String> command = new ArrayList<>(List.of(java, "--enable-native-access=ALL-UNNAMED"));
    String device = System.getProperty(DEVICE);
    if (device != null) {
      command.add("-D" + DEVICE + "=" + device);
    }
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(List.of("io.cuvette.benchmarks.Main", "facts", "importer", socket.toString()));
    return new ProcessBuilder(command).inheritIO().start();
  }

  private void export(Kind kind, IpcChannel channel) {
    try (DriverPoolResource resource = ways.make(kind, How.IPC);
        DriverPoolResource other = ways.make(kind, How.IPC);
        Buffer large = resource.allocate(Ways.MIB, ways.stream());
        Buffer small = resource.allocate(ODD_BYTES, ways.stream());
        Buffer foreign = other.allocate(Ways.MIB, ways.stream())) {
      large.fill(WRITTEN, ways.stream());
      ways.stream().synchronize();
      channel.send(resource.allocationHandle());
      channel.send(large.descriptor());
      channel.send(small.descriptor());
      channel.send(foreign.descriptor());
      recorder.fact("ipc." + kind + ".importer_finished", () -> answer(channel));
      recorder.fact("ipc." + kind + ".exporter_sees_importers_write", () -> ways.firstByte(large));
      recorder.outcome(
          "ipc." + kind + ".own_descriptor_in_own_process",
          () -> DescriptorFacts.imported(resource, large.descriptor(), ways).close());
    }
  }

  private static String answer(IpcChannel channel) {
    try (IpcChannel.Message message = channel.receiveMessage(PATIENCE)) {
      return new String(message.bytes(), StandardCharsets.UTF_8);
    }
  }
}
