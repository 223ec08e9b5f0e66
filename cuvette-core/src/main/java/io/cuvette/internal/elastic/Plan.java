package io.cuvette.internal.elastic;

import io.cuvette.internal.space.Growth;
import io.cuvette.internal.space.Victim;
import org.jspecify.annotations.Nullable;

/** A place for a block of a stream. Confined to one thread, and then guarded by the heap's lock. */
final class Plan {
  final ElasticCache cache;
  final Growth growth;

  /** To be mapped. */
  final long bytes;

  /** What is to be unmapped first. */
  @Nullable Victim victims;

  /** The next of those that could not be given back yet. */
  @Nullable Plan next;

  Plan(ElasticCache cache, Growth growth, long bytes) {
    this.cache = cache;
    this.growth = growth;
    this.bytes = bytes;
  }
}
