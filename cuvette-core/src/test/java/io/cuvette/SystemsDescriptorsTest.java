package io.cuvette;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaException;
import io.cuvette.internal.session.PeerHandles;
import java.io.IOException;
import java.nio.channels.Channel;
import java.nio.channels.Pipe;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** Descriptors that no driver made do not reach it. */
class SystemsDescriptorsTest {
  @Test
  @EnabledOnOs(OS.LINUX)
  void descriptorOfTheSystemsOwn_isNoPool(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("file"), "no pool");
    Pipe pipe = Pipe.open();
    Set<String> refused = new TreeSet<>();
    try (Cuda cuda =
            Cuda.open(CudaOptions.simulated().withDecorator(PeerHandlesTest.Exporting::new));
        var opened = Files.newByteChannel(file);
        var source = pipe.source();
        var sink = pipe.sink();
        var socket = SocketChannel.open();
        var selector = Selector.open();
        var none = Files.newByteChannel(Path.of("/dev/null"));
        var zero = Files.newByteChannel(Path.of("/dev/zero"));
        Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) { // a directory's own
      assertThat(List.of(opened, source, sink, socket, none, zero)).allMatch(Channel::isOpen);
      assertThat(selector.isOpen()).isTrue();
      assertThat(PeerHandles.checkedPool(cuda.driver(), Integer.MAX_VALUE)).isPositive();
      for (Path each : all.toList()) {
        String kind = kind(each);
        try {
          PeerHandles.checkedPool(cuda.driver(), Integer.parseInt(each.getFileName().toString()));
        } catch (CudaException e) {
          assertThat(e).hasMessageContaining("expected: a driver's");
          refused.add(kind);
        }
      }
    }
    assertThat(refused)
        .contains("file", "directory", "pipe", "socket", "anon_inode", "/dev/null", "/dev/zero");
  }

  /** Of a descriptor, as the system calls it. */
  private static String kind(Path link) {
    try {
      return Files.isRegularFile(link)
          ? "file"
          : Files.isDirectory(link)
              ? "directory"
              : Files.readSymbolicLink(link).toString().replaceAll(":.*", "");
    } catch (IOException e) {
      return "closed meanwhile";
    }
  }
}
