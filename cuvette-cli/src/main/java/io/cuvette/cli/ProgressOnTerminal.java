package io.cuvette.cli;

import java.io.PrintStream;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;

/** A bar of as many steps as there are, plain for every terminal and locale. Not thread-safe. */
final class ProgressOnTerminal implements Progress {
  private static final int COLUMNS = 80;

  private final ProgressBar bar;

  ProgressOnTerminal(String task, int steps, PrintStream out) {
    bar =
        new ProgressBarBuilder()
            .setTaskName(task)
            .setInitialMax(steps)
            .setStyle(ProgressBarStyle.ASCII)
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
