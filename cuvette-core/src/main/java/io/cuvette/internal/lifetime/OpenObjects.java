package io.cuvette.internal.lifetime;

import io.cuvette.OpenObject;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/** The open objects of one {@code Cuda} that remember where they were made. Thread-safe. */
public final class OpenObjects {
  private final ConcurrentHashMap<Object, Entry> open = new ConcurrentHashMap<>();
  private final AtomicLong made = new AtomicLong();

  private record Entry(Site site, Function<Site, OpenObject> report) {}

  /** Where an object was made. */
  public static final class Site extends Throwable {
    private static final long serialVersionUID = 1L;

    private final transient OpenObjects objects;
    private final long number;

    private Site(OpenObjects objects, long number) {
      super("made here");
      this.objects = objects;
      this.number = number;
    }

    /** Lists what was made here, which is complete, until its key is closed. */
    public void opened(Object key, Function<Site, OpenObject> report) {
      objects.open.put(key, new Entry(this, report));
    }

    public void closed(Object key) {
      objects.close(key);
    }
  }

  /** The stack of the caller. */
  public Site site() {
    return new Site(this, made.getAndIncrement());
  }

  public void close(Object key) {
    open.remove(key);
  }

  /** What is open now, in the order in which it was made. */
  public List<OpenObject> list() {
    return open.values().stream()
        .sorted(Comparator.comparingLong(entry -> entry.site.number))
        .map(entry -> entry.report.apply(entry.site))
        .toList();
  }
}
