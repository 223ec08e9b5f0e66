package io.cuvette.testkit.seeds;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.sim.SimulatedKernel;
import io.cuvette.testkit.seeds.CellBlock.Cell;
import io.cuvette.testkit.seeds.CellBlock.Kind;
import io.cuvette.testkit.seeds.CellBlock.Use;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * The graphs of a {@link DriverProgram}: captured in one or several streams or made of nodes, with
 * conditions, and memory that is freed inside, later, or by the next launch. They are launched in
 * any stream, changed and updated.
 */
final class DriverGraphs {
  private static final int MOST = 5;
  private static final int FREES_ON_LAUNCH = 1;

  /** Runs one of its bodies, or none, or one again and again. */
  private static final class Branch extends CellWork {
    final List<List<CellWork>> bodies;
    private final Cell word;
    long condition;
    int chosen;

    /** What sets the condition; null for a loop, whose body does. */
    @Nullable CellWork chooser;

    Branch(List<List<CellWork>> bodies, Cell word) {
      super(0, (_, _) -> {}, null, _ -> {});
      this.bodies = bodies;
      this.word = word;
      bodies.forEach(body -> body.forEach(work -> using(work.uses)));
    }

    GraphNodeParams.Conditional params() {
      GraphConditionType type = chooser == null ? GraphConditionType.WHILE : GraphConditionType.IF;
      return new GraphNodeParams.Conditional(condition, type, bodies.size());
    }

    @Override
    void apply() {
      if (chooser == null) {
        do {
          bodies.getFirst().forEach(CellWork::apply);
        } while (word.words[0] > 0);
      } else if (chosen != 0 || bodies.size() > 1) {
        bodies.get(chosen != 0 ? 0 : 1).forEach(CellWork::apply);
      }
    }
  }

  /** What can be launched. */
  private static final class Executable {
    final List<CellWork> works;
    final Map<Cell, Use> uses = new LinkedHashMap<>();
    long handle;
    long graph;

    /** None if it was captured. */
    List<Long> nodes = List.of();

    /** What is behind all launches so far. */
    Map<ProgramStream, Integer> last = new HashMap<>();

    /** What launches leave allocated; null if nothing. */
    @Nullable CellBlock left;

    boolean isLeft;
    boolean freesOnLaunch;

    Executable(List<CellWork> works) {
      this.works = works;
    }
  }

  private final DriverProgram program;
  private final CudaDriver driver;
  private final SplittableRandom random;
  private final List<Executable> executables = new ArrayList<>();

  DriverGraphs(DriverProgram program, CudaDriver driver, SplittableRandom random) {
    this.program = program;
    this.driver = driver;
    this.random = random;
  }

  void step() throws Exception {
    if (executables.isEmpty()) {
      make();
    }
    Executable any = executables.get(random.nextInt(executables.size()));
    switch (random.nextInt(8)) {
      case 0, 1 -> {
        if (executables.size() == MOST) {
          drop(any);
        }
        make();
      }
      case 2 -> change(any);
      default -> launch(any);
    }
  }

  private void make() throws Exception {
    CellBlock memory = random.nextInt(4) == 0 ? program.newBlock(Kind.GRAPH) : null;
    boolean isCaptured = random.nextBoolean();
    List<CellWork> works = works(memory, isCaptured);
    boolean isFreed = random.nextBoolean();
    if (memory != null && isFreed) {
      works.add(freeing(memory));
    }
    Executable made = new Executable(works);
    made.left = isFreed ? null : memory;
    made.freesOnLaunch = made.left != null && random.nextBoolean();
    if (isCaptured) {
      made.graph = capture(works);
    } else {
      made.graph = driver.graphs().graphCreate();
      made.nodes = build(made.graph, works);
    }
    made.handle =
        driver
            .graphs()
            .graphInstantiateWithParams(0, made.graph, made.freesOnLaunch ? FREES_ON_LAUNCH : 0, 0)
            .executable();
    works.forEach(work -> work.uses.forEach((cell, use) -> made.uses.merge(cell, use, Use::of)));
    executables.add(made);
  }

  private List<CellWork> works(@Nullable CellBlock memory, boolean isCaptured) {
    List<CellBlock> blocks = new ArrayList<>(program.blocks());
    List<CellWork> works = new ArrayList<>();
    if (memory != null) {
      works.add(allocating(memory));
      works.add(program.works().fill(memory, 0, CellBlock.CELLS, 4).fixed());
      blocks.add(memory);
      blocks.add(memory);
    }
    for (int i = 1 + random.nextInt(7); i > 0; i--) {
      CellWork work = program.works().any(blocks);
      if (!isCaptured && random.nextInt(4) == 0) {
        addBranch(works);
      } else if (work != null && (isCaptured || work.canBeNode())) {
        works.add(work);
      }
    }
    return works;
  }

  private CellWork allocating(CellBlock memory) {
    return new CellWork(
            0,
            (stream, _) ->
                memory.address = driver.ordered().memAllocAsync(0, memory.bytes(), stream.handle),
            _ -> new GraphNodeParams.Allocation(0, memory.bytes(), List.of(), 0),
            _ -> {})
        .using(memory.all(Use.WRITE))
        .fixed();
  }

  private CellWork freeing(CellBlock memory) {
    return new CellWork(
            0,
            (stream, _) -> driver.ordered().memFreeAsync(0, memory.address, stream.handle),
            _ -> new GraphNodeParams.Free(memory.address),
            _ -> {})
        .using(memory.all(Use.WRITE))
        .fixed();
  }

  /** Work that depends on a word of a block that is there. */
  private void addBranch(List<CellWork> works) {
    CellBlock block = program.blocks().get(random.nextInt(program.blocks().size()));
    Cell word = block.cells[random.nextInt(CellBlock.CELLS)];
    if (random.nextBoolean()) {
      CellWork turns = program.works().fill(block, word.index, 1, 4).fixed();
      turns.number = 1 + random.nextInt(3);
      List<CellWork> body = body(word);
      Branch loop = new Branch(List.of(body), word);
      CellWork count = choosing(CellKernels.COUNT, loop, word, () -> word.words[0]--);
      body.add(count.using(word, Use.WRITE));
      works.add(turns);
      works.add(loop.using(word, Use.WRITE));
    } else {
      List<List<CellWork>> bodies = new ArrayList<>(List.of(body(null)));
      if (random.nextBoolean()) {
        bodies.add(body(null));
      }
      Branch branch = new Branch(bodies, word);
      CellWork choose =
          choosing(
              CellKernels.CHOOSE,
              branch,
              word,
              () -> branch.chosen = CellKernels.chosen(word.words[0]));
      branch.chooser = choose.using(word, Use.READ);
      works.add(choose);
      works.add(branch);
    }
  }

  /** Work that a device can do, with anything but one cell. */
  private List<CellWork> body(@Nullable Cell without) {
    List<CellWork> body = new ArrayList<>();
    for (int i = random.nextInt(3); i >= 0; i--) {
      CellWork work = program.works().any(program.blocks());
      if (work != null
          && work.canBeNode()
          && !(work.node() instanceof GraphNodeParams.Host)
          && (without == null || !work.uses.containsKey(without))) {
        body.add(work);
      }
    }
    return body;
  }

  /** A kernel of one thread that looks at a word and sets a condition. */
  private CellWork choosing(SimulatedKernel kernel, Branch branch, Cell word, Runnable effect) {
    return program
        .works()
        .kernel(
            kernel,
            CellKernels.shape(1, 1),
            _ -> CellKernels.arguments(kernel, branch.condition, word.address()),
            _ -> effect.run())
        .fixed();
  }

  /** Adds nodes, each behind those before that are in its way and some others. */
  private List<Long> build(long graph, List<CellWork> works) {
    List<Long> nodes = new ArrayList<>();
    for (CellWork work : works) {
      if (work instanceof Branch branch) {
        branch.condition = driver.graphs().graphConditionalHandleCreate(0, graph, 1, true);
      }
    }
    for (CellWork work : works) {
      List<Long> after = new ArrayList<>();
      for (int i = 0; i < nodes.size(); i++) {
        CellWork earlier = works.get(i);
        boolean isChooser = work instanceof Branch branch && branch.chooser == earlier;
        if (isChooser || work.conflicts(earlier) || random.nextInt(6) == 0) {
          after.add(nodes.get(i));
        }
      }
      nodes.add(add(graph, after.stream().mapToLong(Long::longValue).toArray(), work));
    }
    return nodes;
  }

  private long add(long graph, long[] after, CellWork work) {
    GraphNodeParams params = work instanceof Branch branch ? branch.params() : work.node();
    AddedNode added = driver.graphs().graphAddNode(0, graph, after, params);
    if (work instanceof Branch branch) {
      for (int i = 0; i < branch.bodies.size(); i++) {
        List<Long> _ = build(added.bodies().get(i), branch.bodies.get(i));
      }
    } else if (params instanceof GraphNodeParams.Allocation) {
      work.uses.keySet().iterator().next().block.address = added.address();
    }
    return added.node();
  }

  /** Captures work in some streams, which wait for each other where they have to. */
  private long capture(List<CellWork> works) {
    List<ProgramStream> streams =
        new ArrayList<>(
            program.order().streams.stream()
                .filter(each -> !each.isLegacy() && program.waits().canUse(each))
                .toList());
    while (streams.size() > 3) {
      streams.remove(random.nextInt(streams.size()));
    }
    ProgramStream origin = streams.getFirst();
    driver.captures().streamBeginCapture(0, origin.handle, random.nextInt(3));
    Map<ProgramStream, BitSet> seen = new LinkedHashMap<>(Map.of(origin, new BitSet()));
    List<ProgramStream> users = new ArrayList<>();
    for (CellWork work : works) {
      ProgramStream stream = streams.get(random.nextInt(streams.size()));
      if (!seen.containsKey(stream)) {
        seen.put(stream, new BitSet());
        follow(stream, origin, seen);
      }
      for (int i = 0; i < users.size(); i++) {
        if (!Objects.requireNonNull(seen.get(stream)).get(i) && work.conflicts(works.get(i))) {
          follow(stream, users.get(i), seen);
        }
      }
      work.queue(stream);
      Objects.requireNonNull(seen.get(stream)).set(users.size());
      users.add(stream);
    }
    for (ProgramStream other : seen.keySet()) {
      if (other != origin) {
        follow(origin, other, seen);
      }
    }
    return driver.captures().streamEndCapture(0, origin.handle);
  }

  private void follow(ProgramStream stream, ProgramStream other, Map<ProgramStream, BitSet> seen) {
    long event = driver.events().eventCreate(0, 2);
    driver.events().eventRecord(0, event, other.handle);
    driver.streams().streamWaitEvent(0, stream.handle, event);
    driver.events().eventDestroy(0, event);
    Objects.requireNonNull(seen.get(stream)).or(Objects.requireNonNull(seen.get(other)));
  }

  /** Launches an executable behind what is in the way, unless its launch before is behind it. */
  private void launch(Executable launched) throws Exception {
    if (launched.isLeft && !launched.freesOnLaunch) {
      free(launched);
    }
    ProgramOrder order = program.order();
    ProgramStream stream = program.waits().anyStream();
    for (Map.Entry<Cell, Use> use : launched.uses.entrySet()) {
      Map<ProgramStream, Integer> before = use.getKey().before(use.getValue());
      for (Map.Entry<ProgramStream, Integer> each : before.entrySet()) {
        if (!order.isIn(launched.last, each.getKey(), each.getValue())) {
          program.waits().order(each.getKey(), each.getValue(), stream);
        }
      }
    }
    if (random.nextInt(6) == 0) {
      driver.graphs().graphUpload(0, launched.handle, stream.handle);
    }
    driver.graphs().graphLaunch(0, launched.handle, stream.handle);
    stream.follow(launched.last);
    int number = order.queued(stream);
    launched.works.forEach(CellWork::apply);
    launched.uses.forEach((cell, use) -> cell.note(use, stream, number));
    launched.last = stream.reached();
    CellBlock left = launched.left;
    if (left != null) {
      launched.isLeft = true;
      use(left);
      if (random.nextInt(3) == 0) {
        free(launched);
      }
    }
  }

  /** Uses what a launch left allocated. */
  private void use(CellBlock left) throws Exception {
    Cell cell = left.cells[random.nextInt(CellBlock.CELLS)];
    Cell other = program.blocks().getFirst().cells[random.nextInt(CellBlock.CELLS)];
    switch (random.nextInt(4)) {
      case 0 -> program.check(cell);
      case 1 -> program.perform(program.works().copy(cell, other, 1));
      case 2 -> program.perform(program.works().mix(other, cell));
      default -> {}
    }
  }

  private void free(Executable launched) throws Exception {
    CellBlock left = Objects.requireNonNull(launched.left);
    program.perform(freeing(left));
    launched.isLeft = false;
  }

  /** Changes a node of an executable, or all of them by another graph. */
  private void change(Executable changed) {
    List<CellWork> works = changed.works;
    boolean isPlain = works.stream().noneMatch(each -> each instanceof Branch || each.isFixed);
    if (changed.nodes.isEmpty() || works.isEmpty()) {
      return;
    }
    if (isPlain && works.stream().allMatch(each -> each.isEnabled) && random.nextBoolean()) {
      update(changed);
      return;
    }
    int index = random.nextInt(works.size());
    CellWork work = works.get(index);
    long node = changed.nodes.get(index);
    if (work instanceof Branch || work.isFixed) {
      return;
    }
    if (random.nextBoolean() && !(work.node() instanceof GraphNodeParams.Host)) {
      work.isEnabled = !work.isEnabled;
      driver.graphs().graphNodeSetEnabled(changed.handle, node, work.isEnabled);
    } else if (work.isEnabled) {
      work.number = random.nextInt(1000);
      driver.graphs().graphExecNodeSetParams(0, changed.handle, node, work.node());
    }
  }

  /** By a graph of the same nodes, each of which does what it did with another number. */
  private void update(Executable updated) {
    long graph = driver.graphs().graphClone(updated.graph);
    for (int i = 0; i < updated.works.size(); i++) {
      CellWork work = updated.works.get(i);
      work.number = random.nextInt(1000);
      long node = driver.graphs().graphNodeFindInClone(updated.nodes.get(i), graph);
      driver.graphs().graphNodeSetParams(0, node, work.node());
    }
    GraphUpdateResult result = driver.graphs().graphExecUpdate(0, updated.handle, graph);
    if (result.result() != 0) {
      throw new AssertionError("not updated: " + result);
    }
    driver.graphs().graphDestroy(graph);
  }

  void dropWith(CellBlock block) throws Exception {
    for (Executable each : List.copyOf(executables)) {
      if (each.uses.keySet().stream().anyMatch(cell -> cell.block == block)) {
        drop(each);
      }
    }
  }

  void dropAll() throws Exception {
    for (Executable each : List.copyOf(executables)) {
      drop(each);
    }
  }

  /** Destroys an executable, which may be running. */
  private void drop(Executable dropped) throws Exception {
    if (dropped.isLeft) {
      free(dropped);
    }
    driver.graphs().graphExecDestroy(dropped.handle);
    driver.graphs().graphDestroy(dropped.graph);
    executables.remove(dropped);
  }
}
