package io.cuvette.cli;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;

/**
 * Standard output that may be a pipe: a PrintStream says nothing when its reader goes away, and the
 * command would work on without a reader. Not thread-safe.
 */
final class PipedOutput extends FilterOutputStream {
  PipedOutput(OutputStream target) {
    super(target);
  }

  @Override
  public void write(int value) throws IOException {
    write(new byte[] {(byte) value}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int offset, int count) throws IOException {
    try {
      out.write(bytes, offset, count);
    } catch (IOException e) {
      if (String.valueOf(e.getMessage()).contains("Broken pipe")) {
        throw new ReaderGoneException(e);
      }
      throw e;
    }
  }
}
