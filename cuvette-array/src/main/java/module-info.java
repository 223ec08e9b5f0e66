/** Arrays of elements on devices and in page-locked host memory. */
module io.cuvette.array {
  requires static transitive org.jspecify;
  requires transitive io.cuvette;

  exports io.cuvette.array;
}
