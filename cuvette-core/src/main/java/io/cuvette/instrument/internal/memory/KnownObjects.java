package io.cuvette.instrument.internal.memory;

import io.cuvette.instrument.internal.order.Clock;
import io.cuvette.instrument.internal.order.KnownStreams;
import io.cuvette.instrument.internal.order.Lane;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The objects that graphs retain. Once the driver has destroyed one, all launches of what retained
 * it are done, and whoever sees that knows it, without another wait. Not thread-safe.
 */
public final class KnownObjects {
  private final KnownStreams streams;

  /** Those that no graph retains yet. */
  private final Map<Long, Retained> made = new HashMap<>();

  private final Map<Long, List<Retained>> ofGraphs = new HashMap<>();

  KnownObjects(KnownStreams streams) {
    this.streams = streams;
  }

  /** One of them. Not thread-safe. */
  public static final class Retained {
    private final Clock launches = new Clock();
    private boolean destroyed;
  }

  public Retained created(long handle) {
    Retained object = new Retained();
    made.put(handle, object);
    return object;
  }

  /** Notes that the program has given its reference back. */
  public void released(long handle) {
    made.remove(handle);
  }

  /** Notes that a graph has taken over the reference of the program. */
  public void retained(long graph, long handle) {
    Retained object = made.remove(handle);
    if (object != null) {
      ofGraphs.computeIfAbsent(graph, _ -> new ArrayList<>(1)).add(object);
    }
  }

  /** Notes that a graph has what another one has: its copy, or with a copy of it inside. */
  public void copied(long graph, long to) {
    List<Retained> objects = of(graph);
    if (!objects.isEmpty()) {
      ofGraphs.computeIfAbsent(to, _ -> new ArrayList<>(1)).addAll(objects);
    }
  }

  /** Notes that a graph ends; what was instantiated from it keeps its objects, which it gives. */
  public List<Retained> ended(long graph) {
    List<Retained> objects = ofGraphs.remove(graph);
    return objects == null ? List.of() : objects;
  }

  /** Notes that a graph has not ended. */
  public void restored(long graph, List<Retained> objects) {
    if (!objects.isEmpty()) {
      ofGraphs.put(graph, objects);
    }
  }

  List<Retained> of(long graph) {
    return List.copyOf(ofGraphs.getOrDefault(graph, List.of()));
  }

  /** Notes a launch, which the objects outlive. */
  void launched(List<Retained> objects, Lane lane) {
    for (Retained object : objects) {
      object.launches.merge(streams.workOf(lane));
      if (object.destroyed) {
        streams.order.finish(object.launches);
      }
    }
  }

  /** Notes that an object is gone. */
  public void destroyed(Retained object) {
    if (!object.destroyed) {
      object.destroyed = true;
      streams.order.finish(object.launches);
    }
  }
}
