package io.cuvette.cli;

import io.cuvette.Cuda;
import io.cuvette.examples.Output;
import java.io.PrintStream;

/** Prints what an example or the tour says and finds, as text or as JSON. Not thread-safe. */
final class Narrator implements Output {
  private final CommonOptions options;
  private final PrintStream out;
  private final String kind;
  private final String name;
  private int checks;

  Narrator(CommonOptions options, String kind, String name) {
    this.options = options;
    this.out = options.terminal().out();
    this.kind = kind;
    this.name = name;
  }

  void start(Cuda cuda) {
    if (options.json()) {
      out.println(
          json().with("device", cuda.currentDevice().name()).with("simulated", cuda.isSimulated()));
    } else {
      String simulated = cuda.isSimulated() ? " (simulated)" : "";
      out.println(name + " on " + cuda.currentDevice().name() + simulated);
    }
  }

  void title(String text) {
    if (options.json()) {
      out.println(json().with("title", text));
    } else {
      out.println();
      out.println(text);
    }
  }

  void end() {
    if (options.json()) {
      out.println(json().with("passed", true).with("checks", checks));
    } else {
      out.println();
      out.println(checks + " results checked, all as expected.");
    }
  }

  @Override
  public void say(String text) {
    if (options.json()) {
      out.println(json().with("text", text));
    } else {
      text.lines().forEach(line -> Wrapped.print(out, "  ", line));
    }
  }

  @Override
  public void show(String label, Object value) {
    print(label, value, false);
  }

  @Override
  public void shown(String label, Object value) {
    checks++;
    print(label, value, true);
  }

  private void print(String label, Object value, boolean checked) {
    if (options.json()) {
      Object typed = value instanceof Number || value instanceof Boolean ? value : value.toString();
      out.println(json().with("name", label).with("value", typed).with("checked", checked));
    } else {
      String text = value + (checked ? "  ok" : "");
      String line = "    %-40s %s".formatted(label, text);
      if (line.length() <= Wrapped.COLUMNS) {
        out.println(line);
      } else {
        out.println("    " + label);
        Wrapped.print(out, "      ", text);
      }
    }
  }

  private Json json() {
    return new Json().with(kind, name);
  }
}
