package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphEdge;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What captures record of random programs, beside a model of their ends. */
class CaptureModelTest extends SimTestBase {
  private static final int STREAMS = 4;
  private static final int EVENTS = 5;
  private static final int STEPS = 60;
  private static final int RELAXED = 2;

  private final long memory = driver.memory().memAlloc(0, 64);
  private final long[] streams = new long[STREAMS];
  private final long[] events = new long[EVENTS];

  /** What the next operation of each stream waits for; null for one that is not captured. */
  private final List<Set<Integer>> ends = new ArrayList<>();

  /** What each event stands for; null if it was not recorded in this capture. */
  private final List<Set<Integer>> points = new ArrayList<>();

  /** What each node waits for, in the order of the nodes. */
  private final List<Set<Integer>> nodes = new ArrayList<>();

  private void begin() {
    for (int i = 0; i < STREAMS; i++) {
      streams[i] = driver.streams().streamCreateWithPriority(0, i % 2, 0);
      ends.add(null);
    }
    for (int i = 0; i < EVENTS; i++) {
      events[i] = driver.events().eventCreate(0, 2);
      points.add(null);
    }
    driver.captures().streamBeginCapture(0, streams[0], RELAXED);
    ends.set(0, new HashSet<>());
  }

  private void work(int stream) {
    Set<Integer> before = ends.get(stream);
    driver.transfers().memsetD8Async(0, memory, (byte) 1, 64, streams[stream]);
    if (before != null) {
      nodes.add(before);
      ends.set(stream, new HashSet<>(Set.of(nodes.size() - 1)));
    }
  }

  private void record(int stream, int event) {
    driver.events().eventRecord(0, events[event], streams[stream]);
    Set<Integer> before = ends.get(stream);
    points.set(event, before == null ? null : new HashSet<>(before));
  }

  private void wait(int stream, int event) {
    Set<Integer> point = points.get(event);
    if (point == null && ends.get(stream) != null) {
      return; // an event of outside is none of a capture's
    }
    driver.streams().streamWaitEvent(0, streams[stream], events[event]);
    if (point != null) {
      if (ends.get(stream) == null) {
        ends.set(stream, new HashSet<>());
      }
      ends.get(stream).addAll(point);
    }
  }

  private void replace(int stream, SplittableRandom random) {
    if (ends.get(stream) == null || nodes.isEmpty()) {
      return;
    }
    Set<Integer> chosen = new HashSet<>();
    for (int i = random.nextInt(3); i >= 0; i--) {
      chosen.add(random.nextInt(nodes.size()));
    }
    driver.captures().streamUpdateCaptureDependencies(0, streams[stream], handles(chosen));
    ends.set(stream, chosen);
  }

  private long graph() {
    return driver.captures().streamGetCaptureInfo(0, streams[0]).graph();
  }

  private long[] handles(Set<Integer> chosen) {
    long[] all = driver.graphs().graphGetNodes(graph());
    return chosen.stream().mapToLong(node -> all[node]).toArray();
  }

  private void assertIsAsTheModel() {
    long id = driver.captures().streamGetCaptureInfo(0, streams[0]).id();
    long[] all = driver.graphs().graphGetNodes(graph());
    assertThat(all).hasSize(nodes.size());
    for (int i = 0; i < STREAMS; i++) {
      Set<Integer> expected = ends.get(i);
      var info = driver.captures().streamGetCaptureInfo(0, streams[i]);
      assertThat(info.status()).isEqualTo(expected == null ? 0 : 1);
      assertThat(driver.captures().streamIsCapturing(0, streams[i])).isEqualTo(info.status());
      assertThat(info.id()).isEqualTo(expected == null ? 0 : id);
      assertThat(driver.captures().streamGetCaptureDependencies(0, streams[i]))
          .containsExactlyInAnyOrder(
              expected == null
                  ? new Long[0]
                  : expected.stream().map(node -> all[node]).toArray(Long[]::new));
    }
    List<GraphEdge> edges = new ArrayList<>();
    for (int to = 0; to < all.length; to++) {
      for (int from : nodes.get(to)) {
        edges.add(new GraphEdge(all[from], all[to]));
      }
    }
    assertThat(driver.graphs().graphGetEdges(graph())).containsExactlyInAnyOrderElementsOf(edges);
  }

  /** Some nodes, and all that they wait for. */
  private Set<Integer> upTo(Set<Integer> last) {
    Set<Integer> found = new HashSet<>(last);
    for (int node = nodes.size() - 1; node >= 0; node--) {
      if (found.contains(node)) {
        found.addAll(nodes.get(node));
      }
    }
    return found;
  }

  private void run(SplittableRandom random, boolean isChecked) {
    begin();
    for (int step = 0; step < STEPS; step++) {
      int stream = random.nextInt(STREAMS);
      switch (random.nextInt(8)) {
        case 0, 1, 2 -> work(stream);
        case 3, 4 -> record(stream, random.nextInt(EVENTS));
        case 5, 6 -> wait(stream, random.nextInt(EVENTS));
        default -> replace(stream, random);
      }
      if (isChecked) {
        assertIsAsTheModel();
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  void capture_isOfWhatItsStreamsDid_andWhole_ifAllIsJoined(int seed) {
    SplittableRandom random = new SplittableRandom(seed);
    run(random, true);
    for (int stream = 1; stream < STREAMS; stream++) {
      if (ends.get(stream) != null && random.nextInt(5) > 0) {
        record(stream, 0);
        wait(0, 0);
      }
    }
    Set<Integer> joined = upTo(ends.getFirst());
    boolean isWhole = ends.stream().allMatch(each -> each == null || joined.containsAll(each));
    long graph = graph();
    long[] all = driver.graphs().graphGetNodes(graph);
    if (isWhole) {
      assertThat(driver.captures().streamEndCapture(0, streams[0])).isEqualTo(graph);
      assertThat(driver.graphs().graphGetNodes(graph)).isEqualTo(all);
      driver.graphs().graphDestroy(graph);
    } else {
      assertFails(
          CudaStatus.STREAM_CAPTURE_UNJOINED,
          "unjoined",
          () -> driver.captures().streamEndCapture(0, streams[0]));
    }
    assertThat(driver.liveGraphs()).isZero();
    Arrays.stream(streams)
        .forEach(each -> assertThat(driver.captures().streamIsCapturing(0, each)).isZero());
    driver.devices().ctxSynchronize(0);
  }

  private void spoil(int way, int stream) {
    switch (way) {
      case 0 ->
          assertFails(
              CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
              "captured",
              () -> driver.streams().streamSynchronize(0, streams[stream]));
      case 1 ->
          assertFails(
              CudaStatus.STREAM_CAPTURE_IMPLICIT,
              "legacy",
              () -> driver.transfers().memsetD8Async(0, memory, (byte) 1, 1, 0));
      case 2 ->
          assertFails(
              CudaStatus.STREAM_CAPTURE_UNSUPPORTED,
              "captured",
              () -> driver.devices().ctxSynchronize(0));
      default -> driver.streams().streamDestroy(0, streams[stream]);
    }
  }

  private void assertIsSpoiled(long stream) {
    CudaStatus status = CudaStatus.STREAM_CAPTURE_INVALIDATED;
    assertThat(driver.captures().streamIsCapturing(0, stream)).isEqualTo(2);
    assertThat(driver.captures().streamGetCaptureDependencies(0, stream)).isEmpty();
    assertFails(
        status, "during", () -> driver.transfers().memsetD8Async(0, memory, (byte) 1, 1, stream));
    assertFails(status, "during", () -> driver.events().eventRecord(0, events[0], stream));
    assertFails(
        status,
        "during",
        () -> driver.captures().streamUpdateCaptureDependencies(0, stream, new long[0]));
  }

  /** All streams of it are, until it ends where it began, and then they are as they were. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  void captureThatIsSpoiled_isSoInAllItsStreams(int seed) {
    run(new SplittableRandom(seed), false);
    int last = STREAMS - 1;
    while (ends.get(last) == null) {
      last--;
    }
    int way = seed % 4;
    spoil(way, last);
    boolean isDestroyed = way == 3;
    for (int i = 0; i < STREAMS; i++) {
      if (ends.get(i) != null && !(isDestroyed && (i == last || last == 0))) {
        assertIsSpoiled(streams[i]);
        long stream = streams[i];
        if (i > 0) {
          assertFails(
              CudaStatus.STREAM_CAPTURE_UNMATCHED,
              "began on another",
              () -> driver.captures().streamEndCapture(0, stream));
        }
      }
    }
    if (!(isDestroyed && last == 0)) {
      assertFails(
          CudaStatus.STREAM_CAPTURE_INVALIDATED,
          "during",
          () -> driver.captures().streamEndCapture(0, streams[0]));
    }
    for (int i = 0; i < STREAMS; i++) {
      if (!(isDestroyed && i == last)) {
        assertThat(driver.captures().streamIsCapturing(0, streams[i])).isZero();
        driver.transfers().memsetD8Async(0, memory, (byte) 1, 64, streams[i]);
      }
    }
    driver.devices().ctxSynchronize(0);
    assertThat(driver.liveGraphs()).isZero();
  }
}
