package io.cuvette.internal.elastic;

import io.cuvette.internal.pool.Slabs;
import io.cuvette.internal.space.Space;

/** The memory of one kind that the stripes of a cache have. Guarded by the heap's lock. */
record HeapSlabs(Spaces spaces, ElasticBooks books, ElasticCache cache, int kind)
    implements Slabs.Source {
  @Override
  public void take(int block, long bytes) {
    Space space = spaces.of(kind);
    long units = Spaces.units(bytes);
    space.take(space.makeRoom(block, units), units);
    cache.live++;
    books.takeSlab(bytes);
  }

  @Override
  public int cut(int block, long bytes) {
    int second = spaces.of(kind).cut(block, Spaces.units(bytes));
    cache.live++;
    books.takeSlab(0);
    return second;
  }

  @Override
  public void give(int block, long bytes, long time) {
    spaces.give(cache, kind, block, time);
    books.give(0, bytes);
  }
}
