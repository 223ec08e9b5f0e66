/** The cuvette command. */
module io.cuvette.cli {
  requires static org.jspecify;
  requires io.cuvette;
  requires info.picocli;
  // The bar is an ornament: without the library the command works and shows none.
  requires static me.tongfei.progressbar;
}
