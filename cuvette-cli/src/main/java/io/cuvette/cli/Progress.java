package io.cuvette.cli;

/** Shows on a terminal that long work goes on. Not thread-safe. */
public interface Progress extends AutoCloseable {

  /** One more step is done. */
  void step();

  @Override
  void close();

  /** A bar if somebody looks on and the library for it is there, else nothing. */
  static Progress start(CommonOptions options, String task, int steps) {
    if (options.json() || !options.terminal().interactive()) {
      return new NoProgress();
    }
    try {
      return new ProgressOnTerminal(task, steps, options.terminal().err());
    } catch (LinkageError e) {
      return new NoProgress();
    }
  }

  /** Nothing is shown. */
  final class NoProgress implements Progress {
    @Override
    public void step() {}

    @Override
    public void close() {}
  }
}
