package io.cuvette.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.CudaStatus;
import io.cuvette.driver.GraphConditionType;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.UserObject;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** What is inside of graphs inside of graphs, and what their executables keep of it. */
class GraphContentsTest extends SimTestBase {
  private static final CudaStatus INVALID = CudaStatus.INVALID_VALUE;
  private static final int UPLOAD = 2;
  private static final int NOT_SUPPORTED_HERE = 3;
  private static final int SEVERAL_CONTEXTS = 4;

  private final long graph = driver.graphs().graphCreate();
  private final long memory = driver.memory().memAlloc(0, 64);

  private AddedNode added(int device, long to, GraphNodeParams params, long... behind) {
    return driver.graphs().graphAddNode(device, to, behind, params);
  }

  private long condition(long of) {
    return driver.graphs().graphConditionalHandleCreate(0, of, 1, true);
  }

  private static GraphNodeParams fill(long address, int value) {
    return new GraphNodeParams.Fill(address, value, 1, 8);
  }

  private InstantiatedGraph instantiate(long of) {
    return driver.graphs().graphInstantiateWithParams(0, of, 0, 0);
  }

  private long inside(long child) {
    return driver.machine.graphs.nodes.get(child).work().graphs().getFirst().handle;
  }

  @Test
  void graphInsideOfABody_hasOnlyWhatABodyHas() {
    long onSecond = driver.memory().memAlloc(1, 64);
    GraphNodeParams branch =
        new GraphNodeParams.Conditional(condition(graph), GraphConditionType.IF, 1);
    long body = added(0, graph, branch).bodies().getFirst();
    long outer = driver.graphs().graphCreate();
    long inner = driver.graphs().graphCreate();
    added(0, outer, new GraphNodeParams.Child(inner));
    long child = added(0, body, new GraphNodeParams.Child(outer)).node();
    long within = inside(driver.graphs().graphGetNodes(inside(child))[0]);
    long host = added(0, within, new GraphNodeParams.Host(() -> {})).node();
    assertThat(instantiate(graph)).isEqualTo(new InstantiatedGraph(0, NOT_SUPPORTED_HERE, host));
    driver.graphs().graphDestroyNode(host);
    long elsewhere = added(1, within, fill(onSecond, 1)).node();
    assertThat(instantiate(graph)).isEqualTo(new InstantiatedGraph(0, SEVERAL_CONTEXTS, elsewhere));
    driver.graphs().graphDestroyNode(elsewhere);
    added(0, within, fill(memory, 5));
    long executable = instantiate(graph).executable();
    driver.graphs().graphLaunch(0, executable, 0);
    driver.streams().streamSynchronize(0, 0);
    assertThat(read(memory, 8)).containsOnly(5);
  }

  @Test
  void objectOfAGraphThatANodeWasGiven_livesAsLongAsTheExecutable() {
    long child = added(0, graph, new GraphNodeParams.Child(filling(1))).node();
    long executable = instantiate(graph).executable();
    UserObject object = driver.graphs().userObjectCreate();
    long next = filling(2);
    driver.graphs().graphRetainUserObject(next, object.handle());
    driver.graphs().graphExecNodeSetParams(0, executable, child, new GraphNodeParams.Child(next));
    driver.graphs().graphDestroy(next);
    assertThat(object.isDestroyed()).as("the executable uses it").isFalse();
    CountDownLatch goOn = hold(0, 0);
    driver.graphs().graphLaunch(0, executable, 0);
    driver.graphs().graphExecDestroy(executable);
    assertThat(object.isDestroyed()).as("the launch uses it").isFalse();
    goOn.countDown();
    driver.streams().streamSynchronize(0, 0);
    assertThat(object.isDestroyed()).isTrue();
    assertThat(read(memory, 8)).containsOnly(2);
  }

  private long filling(int value) {
    long made = driver.graphs().graphCreate();
    added(0, made, fill(memory, value));
    return made;
  }

  @Test
  void conditions_areThereAsLongAsAGraphOrAnExecutableReadsThem() {
    long condition = condition(graph);
    added(0, graph, new GraphNodeParams.Conditional(condition, GraphConditionType.IF, 1));
    long executable = instantiate(graph).executable();
    driver.graphs().graphDestroy(graph);
    assertThat(driver.machine.graphs.conditions.find(condition)).isNotNull();
    driver.graphs().graphExecDestroy(executable);
    assertThat(driver.machine.graphs.conditions.find(condition)).isNull();
  }

  /** From its update on an executable reads those of the graph that it was updated to. */
  @Test
  void conditionsBeforeAnUpdate_areNotKeptByIt_andThoseBehindItAre() {
    long before = condition(graph);
    added(0, graph, new GraphNodeParams.Conditional(before, GraphConditionType.IF, 1));
    long executable = instantiate(graph).executable();
    long next = driver.graphs().graphCreate();
    long behind = condition(next);
    added(0, next, new GraphNodeParams.Conditional(behind, GraphConditionType.IF, 1));
    assertThat(driver.graphs().graphExecUpdate(0, executable, next).result()).isZero();
    driver.graphs().graphDestroy(graph);
    driver.graphs().graphDestroy(next);
    assertThat(driver.machine.graphs.conditions.find(before)).isNull();
    assertThat(driver.machine.graphs.conditions.find(behind)).isNotNull();
    driver.graphs().graphExecDestroy(executable);
    assertThat(driver.machine.graphs.conditions.find(behind)).isNull();
  }

  @Test
  void graphThatCannotBeCopied_isNotCopiedInPart() {
    long child = added(0, graph, new GraphNodeParams.Child(driver.graphs().graphCreate())).node();
    long within = inside(child);
    added(0, within, new GraphNodeParams.Conditional(condition(within), GraphConditionType.IF, 1));
    int before = driver.liveGraphs();
    UserObject object = driver.graphs().userObjectCreate();
    driver.graphs().graphRetainUserObject(graph, object.handle());
    int kept = driver.machine.graphs.graphs.size();
    CudaStatus status = CudaStatus.NOT_SUPPORTED;
    assertFails(status, "cannot be cloned", () -> driver.graphs().graphClone(graph));
    long parent = driver.graphs().graphCreate();
    assertFails(status, "cannot", () -> added(0, parent, new GraphNodeParams.Child(graph)));
    assertThat(driver.liveGraphs()).isEqualTo(before + 1);
    assertThat(driver.machine.graphs.graphs.size()).isEqualTo(kept + 1);
    driver.graphs().graphDestroy(graph);
    assertThat(object.isDestroyed()).isTrue();
  }

  @Test
  void memoryIsReserved_byAnUploadOrALaunch_andByNothingElse() {
    added(0, graph, new GraphNodeParams.Allocation(0, 2 * MIB, List.of(), 0));
    long executable =
        driver.graphs().graphInstantiateWithParams(0, graph, 0, NO_HANDLE).executable();
    assertThat(reserved()).as("no upload was asked for").isZero();
    driver.graphs().graphUpload(0, executable, 0);
    assertThat(reserved()).isEqualTo(2 * MIB);
    driver.graphs().graphExecDestroy(executable);
    driver.graphs().deviceGraphMemTrim(0);
    assertThat(reserved()).isZero();
    long _ = driver.graphs().graphInstantiateWithParams(0, graph, UPLOAD, 0).executable();
    assertThat(reserved()).isEqualTo(2 * MIB);
  }

  private long reserved() {
    return driver.graphs().deviceGetGraphMemAttribute(0, GraphMemAttribute.RESERVED_CURRENT);
  }

  @Test
  void graphThatIsRefused_isNotUploaded() {
    long _ = condition(graph);
    InstantiatedGraph made = driver.graphs().graphInstantiateWithParams(0, graph, UPLOAD, 0);
    assertThat(made.executable()).isZero();
    assertThat(made.result()).isEqualTo(5);
    assertThat(driver.liveExecutables()).isZero();
  }

  @Test
  void uploadAndLaunch_comeBehindTheLaunchBefore() {
    List<Integer> order = new ArrayList<>();
    long first = stream(0);
    long second = stream(0);
    added(0, graph, new GraphNodeParams.Host(() -> order.add(order.size())));
    long executable = instantiate(graph).executable();
    CountDownLatch held = hold(0, first);
    driver.graphs().graphLaunch(0, executable, first);
    driver.graphs().graphUpload(0, executable, second);
    assertStaysBusy(second);
    driver.graphs().graphLaunch(0, executable, second);
    assertStaysBusy(second);
    assertThat(order).isEmpty();
    held.countDown();
    driver.devices().ctxSynchronize(0);
    assertThat(order).containsExactly(0, 1);
    driver.graphs().graphUpload(0, executable, first);
    driver.streams().streamSynchronize(0, first);
  }

  private void assertStaysBusy(long stream) {
    for (int i = 0; i < 50; i++) {
      assertThat(driver.streams().streamQuery(0, stream)).isFalse();
    }
  }

  @Test
  void graphWithAsManyEdges_fitsOnlyIfTheyAreTheSame() {
    long executable = instantiate(threeNodes(0, 1)).executable();
    assertThat(driver.graphs().graphExecUpdate(0, executable, threeNodes(0, 2)).result()).isZero();
    long other = threeNodes(1, 3);
    long[] nodes = driver.graphs().graphGetNodes(other);
    assertThat(driver.graphs().graphExecUpdate(0, executable, other))
        .isEqualTo(new GraphUpdateResult(2, nodes[2], nodes[1]));
    driver.graphs().graphLaunch(0, executable, 0);
    assertThat(read(memory, 24)).containsOnly(2);
  }

  /** The last node waits for one of the others. */
  private long threeNodes(int before, int value) {
    long made = driver.graphs().graphCreate();
    long[] first = new long[2];
    for (int i = 0; i < 2; i++) {
      first[i] = added(0, made, fill(memory + 8L * i, value)).node();
    }
    added(0, made, fill(memory + 16, value), first[before]);
    return made;
  }

  @Test
  void memoryThatADestroyedGraphWasToFree_isForOthersToFree() {
    AddedNode lent = added(0, graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    GraphNodeParams free = new GraphNodeParams.Free(lent.address());
    long other = driver.graphs().graphCreate();
    added(0, other, free);
    String already = "is freed by a node of graph 0x%x already".formatted(other);
    assertFails(INVALID, already, () -> added(0, graph, free, lent.node()));
    driver.graphs().graphDestroy(other);
    added(0, graph, free, lent.node());
    assertThat(instantiate(graph).result()).isZero();
  }

  /** The device finds it: by the order of calls it was allocated. */
  @Test
  void memoryThatIsFreedBeforeItsAllocation_losesTheDevice() {
    AddedNode made = added(0, graph, new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    long executable = instantiate(graph).executable();
    long first = stream(0);
    long second = stream(0);
    CountDownLatch held = hold(0, first);
    driver.graphs().graphLaunch(0, executable, first);
    long other = driver.graphs().graphCreate();
    added(0, other, new GraphNodeParams.Free(made.address()));
    driver.graphs().graphLaunch(0, instantiate(other).executable(), second);
    assertFails(
        CudaStatus.ILLEGAL_ADDRESS, "", () -> driver.streams().streamSynchronize(0, second));
    held.countDown();
  }

  @Test
  void nodes_areOfOneDeviceEach_andUseWhatItReaches() {
    long lent = lent();
    String rule = "device 0 has access 0";
    assertFails(INVALID, rule, () -> added(0, graph, new GraphNodeParams.Copy(memory, lent, 8)));
    assertFails(INVALID, rule, () -> added(0, graph, new GraphNodeParams.Copy(lent, memory, 8)));
    assertFails(INVALID, rule, () -> added(0, graph, fill(lent, 1)));
    String none = "0x40";
    assertFails(INVALID, none, () -> added(0, graph, new GraphNodeParams.Copy(0x40, memory, 8)));
    assertFails(INVALID, none, () -> added(0, graph, new GraphNodeParams.Copy(memory, 0x40, 8)));
    long node = added(0, graph, new GraphNodeParams.Copy(memory, memory + 8, 8)).node();
    assertFails(
        INVALID,
        rule,
        () ->
            driver.graphs().graphNodeSetParams(0, node, new GraphNodeParams.Copy(memory, lent, 8)));
    GraphNodeParams other =
        new GraphNodeParams.Conditional(condition(graph), GraphConditionType.IF, 1);
    assertFails(INVALID, "of device 1", () -> added(1, graph, other));
    added(0, graph, other);
    assertFails(INVALID, "of no other node", () -> added(0, graph, other));
    assertThat(driver.graphs().graphGetNodes(graph)).hasSize(2);
  }

  /** Memory of a pool of the second device, which the first may not use. */
  private long lent() {
    long stream = stream(1);
    long address = driver.ordered().memAllocAsync(1, 64, stream);
    driver.streams().streamSynchronize(1, stream);
    return address;
  }

  @Test
  void parametersOfAnotherType_areForNoNode() {
    List<GraphNodeParams> all =
        List.of(
            fill(memory, 1),
            new GraphNodeParams.Copy(memory, memory + 8, 8),
            new GraphNodeParams.Host(() -> {}),
            new GraphNodeParams.Empty(),
            new GraphNodeParams.Child(driver.graphs().graphCreate()),
            new GraphNodeParams.EventRecord(driver.events().eventCreate(0, 0)),
            new GraphNodeParams.EventWait(driver.events().eventCreate(0, 0)),
            new GraphNodeParams.Allocation(0, 64, List.of(), 0));
    for (GraphNodeParams of : all) {
      long node = added(0, driver.graphs().graphCreate(), of).node();
      for (GraphNodeParams to : all) {
        if (of.type() != to.type()) {
          assertFails(
              INVALID,
              "of type %s for a node of type %s".formatted(to.type(), of.type()),
              () -> driver.graphs().graphNodeSetParams(0, node, to));
        }
      }
      assertFails(
          INVALID,
          "for a node of type %s".formatted(of.type()),
          () -> driver.graphs().graphNodeSetParams(0, node, new GraphNodeParams.Other(of.type())));
    }
  }

  @Test
  void drawing_hasTheParametersOfTheKindsThatItsFlagNames_andOfNoOthers() {
    long event = driver.events().eventCreate(0, 0);
    Map<Integer, List<GraphNodeParams>> kinds =
        Map.of(
            3, List.of(new GraphNodeParams.Copy(memory, memory + 8, 8)),
            4, List.of(fill(memory, 1)),
            5, List.of(new GraphNodeParams.Host(() -> {})),
            6,
                List.of(
                    new GraphNodeParams.EventRecord(event), new GraphNodeParams.EventWait(event)),
            11, List.of(new GraphNodeParams.Allocation(0, 64, List.of(), 0)),
            15, List.of(new GraphNodeParams.Conditional(0, GraphConditionType.IF, 1)),
            20, List.of(new GraphNodeParams.Empty()));
    kinds.forEach((bit, kind) -> {
      for (GraphNodeParams each : kind) {
        long drawn = driver.graphs().graphCreate();
        added(
            0,
            drawn,
            each instanceof GraphNodeParams.Conditional of
                ? new GraphNodeParams.Conditional(condition(drawn), of.conditionType(), of.size())
                : each);
        String start = "%s\\n%s".formatted(each.type(), each.getClass().getSimpleName());
        for (int flag = 2; flag <= 20; flag++) {
          boolean shown = driver.graphs().graphDebugDotPrint(drawn, 1 << flag).contains(start);
          assertThat(shown).as("%s, flag %d", each, flag).isEqualTo(flag == bit && bit < 20);
        }
        String verbose = driver.graphs().graphDebugDotPrint(drawn, 1);
        boolean shown = verbose.contains("\\n" + each.getClass().getSimpleName());
        assertThat(shown).as("%s, all there is", each).isEqualTo(bit < 20);
      }
    });
  }
}
