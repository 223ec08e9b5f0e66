package io.cuvette.cli;

import picocli.CommandLine.IVersionProvider;

/** Says which Cuvette and which Java this is. Stateless. */
public final class Version implements IVersionProvider {

  /** For picocli. */
  public Version() {}

  @Override
  public String[] getVersion() {
    return new String[] {"cuvette " + text() + ", Java " + Runtime.version()};
  }

  /** The version of Cuvette; {@code development} where it was not built as a module. */
  public static String text() {
    var descriptor = Version.class.getModule().getDescriptor();
    return descriptor == null ? "development" : descriptor.rawVersion().orElse("development");
  }
}
