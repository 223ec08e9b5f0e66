package io.cuvette.cli;

import java.io.PrintStream;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;

/** A bar of as many steps as there are. Not thread-safe. */
final class ProgressOnTerminal implements Progress {
  private static final int COLUMNS = 80;

  private final ProgressBar bar;

  ProgressOnTerminal(String task, int steps, PrintStream out) {
    bar =
        new ProgressBarBuilder()
            .setTaskName(task)
            .setInitialMax(steps)
            .setConsumer(new ConsoleProgressBarConsumer(out, COLUMNS))
            .clearDisplayOnFinish()
            .build();
  }

  @Override
  public void step() {
    bar.step();
  }

  @Override
  public void close() {
    bar.close();
  }
}
