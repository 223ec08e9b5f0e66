package io.cuvette.testkit.support;

import java.io.File;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The command line of a second JVM like this one: its runtime, class path and access, so that it
 * works under a build tool and in a linked runtime alike. Stateless.
 */
public final class PeerCommand {
  /** Started quickly, and small: there are several at once. */
  private static final List<String> OPTIONS =
      List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Xmx512m");

  private PeerCommand() {}

  /** The command of a main class, whose arguments follow. */
  public static List<String> of(Class<?> main) {
    List<String> command = new ArrayList<>();
    command.add(java());
    command.addAll(OPTIONS);
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(PeerCommand::isAccess)
        .forEach(command::add);
    System.getProperties().stringPropertyNames().stream()
        .filter(name -> name.startsWith("cuvette.") || name.equals("java.io.tmpdir"))
        .forEach(name -> command.add("-D" + name + "=" + System.getProperty(name)));
    command.add("-cp");
    command.add(System.getProperty("java.class.path"));
    command.add(main.getName());
    return command;
  }

  private static String java() {
    String name =
        System.getProperty("os.name").toLowerCase(Locale.ROOT).startsWith("windows")
            ? "java.exe"
            : "java";
    String installed = String.join(File.separator, System.getProperty("java.home"), "bin", name);
    return ProcessHandle.current().info().command().orElse(installed);
  }

  /** Agents, heaps and debuggers are this JVM's own. */
  private static boolean isAccess(String argument) {
    return argument.startsWith("--") || argument.equals("-ea");
  }
}
