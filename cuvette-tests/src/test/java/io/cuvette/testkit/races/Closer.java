package io.cuvette.testkit.races;

/** What can end something that an operation uses; the columns of the table. */
enum Closer {
  BUFFER("buffer"),
  OTHER("other buffer"),
  STREAM("stream"),
  EVENT("event"),
  POOL("pool"),
  MODULE("module"),
  GRAPH("graph"),
  SHARED("handle, channel"),
  CUDA("Cuda"),
  COLLECTOR("collector");

  private final String title;

  Closer(String title) {
    this.title = title;
  }

  /** What the column is called. */
  String title() {
    return title;
  }
}
