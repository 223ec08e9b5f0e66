package io.cuvette.cli;

import java.io.PrintStream;

/** Shows that long work goes on. Not thread-safe. */
public interface Progress extends AutoCloseable {

  /** One more step is done. */
  void step();

  @Override
  void close();

  /** A bar if a person looks on and the library for it is there, else a line now and then. */
  static Progress start(CommonOptions options, String task, int steps) {
    PrintStream err = options.terminal().err();
    if (!options.json() && options.terminal().interactive()) {
      try {
        return new ProgressOnTerminal(task, steps, err);
      } catch (LinkageError e) { // the library is optional
        return new ProgressLines(task, steps, err, System::nanoTime);
      }
    }
    return new ProgressLines(task, steps, err, System::nanoTime);
  }
}
