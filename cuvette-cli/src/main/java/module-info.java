/** The cuvette command, and short example programs. */
module io.cuvette.cli {
  requires static transitive org.jspecify;
  requires transitive io.cuvette;
  requires info.picocli;
  requires io.cuvette.array;
  // The bar is an ornament: without the library the command works and shows none.
  requires static me.tongfei.progressbar;

  exports io.cuvette.examples;

  opens io.cuvette.cli to
      info.picocli;
  opens io.cuvette.cli.bench to
      info.picocli;
  opens io.cuvette.cli.info to
      info.picocli;
  opens io.cuvette.cli.replay to
      info.picocli;
}
