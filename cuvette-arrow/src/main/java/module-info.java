/** Columns of Apache Arrow on devices, and the Arrow C Device data interface. */
module io.cuvette.arrow {
  requires static transitive org.jspecify;
  requires transitive io.cuvette;
  requires transitive org.apache.arrow.memory.core;
  requires transitive org.apache.arrow.vector;

  exports io.cuvette.arrow;
}
