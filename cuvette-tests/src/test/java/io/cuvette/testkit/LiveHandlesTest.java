package io.cuvette.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.UserObject;
import io.cuvette.sim.SimulatedDriver;
import io.cuvette.sim.SimulatedOptions;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a driver gives out is live from the call that makes it to the one that ends it. */
class LiveHandlesTest {
  private static final long HANDLE = 0x770;
  private static final MemorySegment SEGMENT = MemorySegment.ofAddress(HANDLE);
  private static final byte[] BYTES = {};
  private static final PoolProperties POOL = new PoolProperties(1, 0, 1, 0, 0);
  private static final AllocationProperties PLAIN = AllocationProperties.ofDevice(0, 0);

  private final ScriptedDriver script = new ScriptedDriver();
  private final SimulatedDriver driver = SimulatedDriver.open(SimulatedOptions.DEFAULTS);
  private final LiveHandles live = new LiveHandles(script.over(driver));

  /** Two calls, the text of what is live between them, and what the first one gives. */
  private record Life(String text, Object given, Runnable make, String end, Runnable ending) {
    String maker() {
      return text.replaceAll(".* of |\\(.*", "");
    }
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private static Life life(String text, Runnable make, String end, Runnable ending) {
    return new Life(text, HANDLE, make, end, ending);
  }

  private Stream<Life> ofMemory() {
    Runnable free = () -> live.memory().memFree(0, HANDLE);
    Runnable ordered = () -> live.ordered().memFreeAsync(0, HANDLE, 5);
    return Stream.of(
        life(
            "MEMORY 0x770 of memAlloc(64 bytes)",
            () -> live.memory().memAlloc(0, 64),
            "memFree",
            free),
        new Life(
            "MEMORY 0x770 of memAllocManaged(64 bytes)",
            SEGMENT,
            () -> live.memory().memAllocManaged(0, 64, 1),
            "memFree",
            free),
        new Life(
            "MEMORY 0x770 of memHostAlloc(64 bytes)",
            SEGMENT,
            () -> live.memory().memHostAlloc(0, 64, 0),
            "memFreeHost",
            () -> live.memory().memFreeHost(0, HANDLE)),
        life(
            "MEMORY 0x770 of memAllocAsync(64 bytes)",
            () -> live.ordered().memAllocAsync(0, 64, 5),
            "memFreeAsync",
            ordered),
        life(
            "MEMORY 0x770 of memAllocFromPoolAsync(64 bytes)",
            () -> live.ordered().memAllocFromPoolAsync(0, 64, 9, 5),
            "memFreeAsync",
            ordered),
        life(
            "MEMORY 0x770 of memPoolImportPointer",
            () -> live.sharing().memPoolImportPointer(9, BYTES),
            "memFreeAsync",
            ordered),
        life(
            "MEMORY 0x770 of ipcOpenMemHandle",
            () -> live.sharing().ipcOpenMemHandle(0, BYTES),
            "ipcCloseMemHandle",
            () -> live.sharing().ipcCloseMemHandle(0, HANDLE)),
        life(
            "MEMORY 0x770 of callMalloc(64 bytes)",
            () -> live.natives().callMalloc(1, 2, 64, 0),
            "callFree",
            () -> live.natives().callFree(1, 2, HANDLE, 0)));
  }

  private Stream<Life> ofMappings() {
    Runnable release = () -> live.virtual().memRelease(HANDLE);
    return Stream.of(
        life(
            "ADDRESSES 0x770 of memAddressReserve(64 bytes)",
            () -> live.virtual().memAddressReserve(64, 0, 0),
            "memAddressFree",
            () -> live.virtual().memAddressFree(HANDLE, 64)),
        life(
            "ALLOCATION 0x770 of memCreate(64 bytes)",
            () -> live.virtual().memCreate(64, PLAIN),
            "memRelease",
            release),
        life(
            "ALLOCATION 0x770 of memRetainAllocationHandle",
            () -> live.virtual().memRetainAllocationHandle(9),
            "memRelease",
            release),
        life(
            "ALLOCATION 0x770 of memImportFromShareableHandle",
            () -> live.virtual().memImportFromShareableHandle(3),
            "memRelease",
            release),
        life(
            "MAPPING 0x770 of memMap(64 bytes)",
            () -> live.virtual().memMap(HANDLE, 64, 0, 9),
            "memUnmap",
            () -> live.virtual().memUnmap(HANDLE, 64)));
  }

  private Stream<Life> ofObjects() {
    Runnable destroyPool = () -> live.pools().memPoolDestroy(HANDLE);
    Runnable destroyEvent = () -> live.events().eventDestroy(0, HANDLE);
    return Stream.of(
        life(
            "POOL 0x770 of memPoolCreate(" + POOL + ")",
            () -> live.pools().memPoolCreate(POOL),
            "memPoolDestroy",
            destroyPool),
        life(
            "POOL 0x770 of memPoolImportFromShareableHandle",
            () -> live.sharing().memPoolImportFromShareableHandle(3),
            "memPoolDestroy",
            destroyPool),
        life(
            "EVENT 0x770 of eventCreate",
            () -> live.events().eventCreate(0, 0),
            "eventDestroy",
            destroyEvent),
        life(
            "EVENT 0x770 of ipcOpenEventHandle",
            () -> live.sharing().ipcOpenEventHandle(0, BYTES),
            "eventDestroy",
            destroyEvent),
        life(
            "STREAM 0x770 of streamCreateWithPriority",
            () -> live.streams().streamCreateWithPriority(0, 1, 0),
            "streamDestroy",
            () -> live.streams().streamDestroy(0, HANDLE)),
        life(
            "LIBRARY 0x770 of libraryLoadData",
            () -> live.kernels().libraryLoadData(BYTES),
            "libraryUnload",
            () -> live.kernels().libraryUnload(HANDLE)));
  }

  private Stream<Life> ofGraphs() {
    Runnable destroy = () -> live.graphs().graphDestroy(HANDLE);
    return Stream.of(
        life(
            "GRAPH 0x770 of streamEndCapture",
            () -> live.captures().streamEndCapture(0, 5),
            "graphDestroy",
            destroy),
        life(
            "GRAPH 0x770 of graphCreate",
            () -> live.graphs().graphCreate(),
            "graphDestroy",
            destroy),
        life(
            "GRAPH 0x770 of graphClone",
            () -> live.graphs().graphClone(9),
            "graphDestroy",
            destroy),
        new Life(
            "EXECUTABLE_GRAPH 0x770 of graphInstantiateWithParams",
            new InstantiatedGraph(HANDLE, 0, 0),
            () -> live.graphs().graphInstantiateWithParams(0, 9, 0, 0),
            "graphExecDestroy",
            () -> live.graphs().graphExecDestroy(HANDLE)),
        new Life(
            "USER_OBJECT 0x770 of userObjectCreate",
            new UserObject(HANDLE, () -> true),
            () -> live.graphs().userObjectCreate(),
            "userObjectRelease",
            () -> live.graphs().userObjectRelease(HANDLE)));
  }

  private List<String> texts() {
    return live.live().stream().map(Throwable::getMessage).toList();
  }

  @Test
  void everyKind_isNamedBetweenItsCalls_whichReachTheDriverOnce() {
    Stream.of(ofMemory(), ofMappings(), ofObjects(), ofGraphs())
        .flatMap(all -> all)
        .forEach(life -> {
          Object given = life.maker().equals("memMap") ? null : life.given();
          script.answer(life.maker(), _ -> given).answer(life.end(), _ -> null);
          long made = script.count(life.maker());
          long ended = script.count(life.end());
          life.make().run();
          assertThat(texts()).containsExactly(life.text());
          life.ending().run();
          assertThat(texts()).as(life.text()).isEmpty();
          assertThat(script.count(life.maker())).as(life.text()).isEqualTo(made + 1);
          assertThat(script.count(life.end())).as(life.text()).isEqualTo(ended + 1);
        });
  }
}
