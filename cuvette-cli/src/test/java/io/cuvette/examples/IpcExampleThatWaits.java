package io.cuvette.examples;

import io.cuvette.Cuda;
import io.cuvette.CudaOptions;
import java.io.IOException;
import java.io.UncheckedIOException;

/** Runs the example, and at one of its lines prints it and waits to be killed. Stateless. */
final class IpcExampleThatWaits {
  private IpcExampleThatWaits() {}

  public static void main(String[] arguments) {
    try (Cuda cuda = Cuda.open(CudaOptions.simulated())) {
      IpcExample.run(cuda, new WaitingOutput(arguments[0]));
    }
  }

  private record WaitingOutput(String start) implements Output {
    @Override
    public void say(String text) {
      if (text.startsWith(start)) {
        System.out.println(text);
        waitForTheEnd();
      }
    }

    @Override
    public void show(String name, Object value) {
      say(name);
    }

    @Override
    public void shown(String name, Object value) {
      say(name);
    }

    private static void waitForTheEnd() {
      try {
        System.in.read();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }
}
