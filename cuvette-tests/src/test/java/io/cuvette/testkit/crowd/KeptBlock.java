package io.cuvette.testkit.crowd;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.Buffer;
import io.cuvette.CudaEvent;
import io.cuvette.CudaStream;
import java.util.Arrays;

/**
 * Memory of which one thread at a time knows every byte: that thread took it out of the bag. Not
 * thread-safe.
 */
final class KeptBlock {
  final Buffer buffer;

  /** What is in it once the event is done. */
  byte[] content;

  private final CudaEvent done;

  /** A block whose content comes with the first work that the stream is given. */
  KeptBlock(Buffer buffer, CudaStream stream) {
    this.buffer = buffer;
    this.content = new byte[Math.toIntExact(buffer.byteSize())];
    this.done = stream.record();
  }

  int size() {
    return content.length;
  }

  /** Work of the stream comes after all work with the block. */
  void before(CudaStream stream) {
    stream.waitFor(done);
  }

  /** The stream was given work with the block. */
  void after(CudaStream stream) {
    done.record(stream);
  }

  void waitForWork() {
    done.synchronize();
  }

  void assertHolds(byte[] found) {
    int at = Arrays.mismatch(found, content);
    assertThat(at)
        .as(() -> "%s: byte %d is %d, not %d".formatted(buffer, at, found[at], content[at]))
        .isNegative();
  }

  void close() {
    done.close();
    buffer.close();
  }
}
