package io.cuvette.ffm.linux;

import io.cuvette.driver.DescriptorCalls;
import io.cuvette.ffm.FfmDescriptors;
import java.nio.file.Path;
import java.time.Duration;

/** Both ends of a connection within this process. */
record SocketPair(int listener, int client, int server) implements AutoCloseable {
  static final Duration LONG = Duration.ofMinutes(2);

  private static final DescriptorCalls CALLS = new FfmDescriptors();

  static SocketPair open(Path path) {
    int listener = CALLS.listen(path.toString());
    int client = CALLS.connect(path.toString(), LONG);
    return new SocketPair(listener, client, CALLS.accept(listener, LONG));
  }

  @Override
  public void close() {
    for (int descriptor : new int[] {listener, client, server}) {
      if (CALLS.isOpen(descriptor)) {
        CALLS.close(descriptor);
      }
    }
  }
}
