/** JMH benchmarks and the side-by-side programs; not published. */
module io.cuvette.benchmarks {
  requires static org.jspecify;
  requires io.cuvette;
  requires jdk.management;
  requires jmh.core;
  requires org.lwjgl;
  requires org.lwjgl.cuda;
}
