package io.cuvette.cli.replay;

import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.GZIPOutputStream;

/** Writes traces for tests. Stateless. */
final class TraceFiles {
  static final String HEADER = TraceReader.HEADER + "\n";

  private TraceFiles() {}

  static String write(Path folder, String name, String text) {
    return writeBytes(folder, name, text.getBytes(StandardCharsets.UTF_8));
  }

  static String writeBytes(Path folder, String name, byte[] bytes) {
    try {
      return Files.write(folder.resolve(name), bytes).toString();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String gzip(Path folder, String name, String text) {
    Path file = folder.resolve(name);
    try (OutputStream out = new GZIPOutputStream(Files.newOutputStream(file))) {
      out.write(text.getBytes(StandardCharsets.UTF_8));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return file.toString();
  }

  /** The trace that lives in the repository. */
  static String ofRepository() {
    Path trace = Path.of("traces/resnet50_train_multiscale.csv.gz");
    Path root = Path.of(System.getProperty("cuvette.root", ".."));
    return (Files.exists(trace) ? trace : root.resolve(trace))
        .toString(); // the GPU bundle has it beside it
  }
}
