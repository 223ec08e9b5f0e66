package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.UserObject;
import java.lang.foreign.Arena;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Captures and graphs, and how all other calls meet the captures of others. */
class FfmCaptureCallsTest extends StubDriverTest {
  private static final int GLOBAL = 0;
  private static final int THREAD_LOCAL = 1;
  private static final int RELAXED = 2;

  @Test
  void captureInfo_isThatOfTheStream() {
    library.answer(17, 0xabc);
    assertThat(driver.captures().streamGetCaptureInfo(1, 0x5))
        .isEqualTo(CaptureInfo.of(1, 17, 0xabc));
    library.answer(0, 0xabc);
    assertThat(driver.captures().streamGetCaptureInfo(1, 0x5)).isEqualTo(new CaptureInfo(2, 0, 0));
    noted(
        "cuStreamGetCaptureInfo@11030(5, 0, 0) in c001",
        "cuStreamGetCaptureInfo@11030(5, 0, 0) in c001");
  }

  @Test
  void userObject_isDestroyed_onceTheDriverCalledItsDestructor() {
    library.answer(0x77, 0);
    UserObject object = driver.graphs().userObjectCreate();
    driver.graphs().graphRetainUserObject(0xabc, object.handle());
    assertThat(object.isDestroyed()).isFalse();
    library.destroyUserObject();
    assertThat(object.isDestroyed()).isTrue();
    assertThat(object.isDestroyed()).isTrue();
    driver.graphs().userObjectRelease(0x78);
    noted(
        "cuUserObjectCreate@11030(1, 1) in c001",
        "cuGraphRetainUserObject@11030(abc, 77, 1, 1) in c001",
        "cuUserObjectRelease@11030(78, 1) in c001");
  }

  @Test
  void userObjectsOneAfterTheOther_areToldApart() {
    for (int i = 0; i < 100; i++) {
      UserObject object = driver.graphs().userObjectCreate();
      assertThat(object.isDestroyed()).isFalse();
      library.destroyUserObject();
      assertThat(object.isDestroyed()).isTrue();
    }
    library.fail("cuUserObjectCreate", 2);
    assertThatThrownBy(driver.graphs()::userObjectCreate).isInstanceOf(CudaException.class);
    library.reset();
    assertThat(driver.graphs().userObjectCreate().isDestroyed()).isFalse();
  }

  @Test
  void graphs() {
    library.answer(0x99, 0);
    assertThat(driver.graphs().graphInstantiateWithParams(1, 0xabc, 0, 0).executable())
        .isEqualTo(0x99);
    driver.graphs().graphLaunch(1, 0x99, 0x5);
    driver.graphs().graphExecDestroy(0x99);
    noted(
        "cuGraphInstantiateWithParams@12000(abc, 0, 0) in c001",
        "cuGraphLaunch@10000(99, 5) in c001",
        "cuGraphExecDestroy@10000(99) in c001");
  }

  /** The calls that captures in global mode forbid, and those nobody knows of. */
  private List<Runnable> callsThatAreRelaxed() {
    PoolProperties properties = new PoolProperties(1, 0, 1, 0, 0);
    return List.of(
        () -> driver.memory().memAlloc(1, 64),
        () -> driver.memory().memFree(1, 64),
        () -> driver.memory().memHostAlloc(1, 64, 0),
        () -> driver.memory().memFreeHost(1, 64),
        () -> driver.memory().memHostRegister(1, Arena.ofAuto().allocate(8), 3),
        () -> driver.memory().memHostUnregister(1, 64),
        () -> driver.memory().memAllocManaged(1, 64, 1),
        () -> driver.ordered().memAllocAsync(1, 64, 0x5),
        () -> driver.ordered().memAllocFromPoolAsync(1, 64, 0x6, 0x5),
        () -> driver.ordered().memFreeAsync(1, 64, 0x5),
        () -> driver.ordered().memFreeAsync(1, 64, 0),
        () -> driver.pools().memPoolCreate(properties),
        () -> driver.pools().memPoolDestroy(0x6),
        () -> driver.pools().memPoolTrimTo(0x6, 0),
        () -> driver.pools().memPoolGetAttribute(0x6, 4),
        () -> driver.pools().memPoolSetAttribute(0x6, 4, 0),
        () -> driver.devices().deviceGetAttribute(75, 1),
        () -> driver.devices().memGetInfo(1),
        () -> driver.memory().pointerGetAttribute(1, 9, 64),
        () -> driver.streams().streamCreateWithPriority(1, 1, 0),
        () -> driver.streams().streamDestroy(1, 0x5),
        () -> driver.streams().streamQuery(1, 0x5),
        () -> driver.streams().streamQuery(1, 0),
        () -> driver.streams().streamSynchronize(1, 0x5),
        () -> driver.events().eventCreate(1, 2),
        () -> driver.events().eventDestroy(1, 0x7),
        () -> driver.events().eventQuery(1, 0x7),
        () -> driver.events().eventSynchronize(1, 0x7),
        () -> driver.devices().ctxSetLimit(1, 0, 1),
        () -> driver.devices().ctxEnablePeerAccess(1, 0),
        () -> driver.transfers().memcpyHtoDAsync(1, 64, Arena.ofAuto().allocate(8), 0x5),
        () -> driver.transfers().memcpyDtoHAsync(1, Arena.ofAuto().allocate(8), 64, 0x5),
        () -> driver.natives().callMalloc(library.address("stub_malloc"), 0, 64, 1),
        () -> driver.natives().callFree(library.address("stub_free"), 0, 64, 1),
        () -> driver.graphs().graphInstantiateWithParams(1, 0xabc, 0, 0),
        () -> driver.graphs().graphDestroy(0xabc));
  }

  @Test
  void unsafeCalls_areRelaxed_andLeaveTheModeOfTheThreadAsItWas() {
    for (int mode : new int[] {GLOBAL, THREAD_LOCAL, RELAXED}) {
      library.setMode(mode);
      for (Runnable call : callsThatAreRelaxed()) {
        call.run();
        assertThat(library.mode()).isEqualTo(mode);
      }
    }
    assertThat(library.calls()).hasSizeGreaterThan(3 * callsThatAreRelaxed().size() - 1);
    assertThat(library.notRelaxed()).isEmpty();
  }

  @Test
  void callsThatFail_leaveTheModeOfTheThreadAsItWas() {
    library.fail("cuMemAlloc", 2);
    assertThatThrownBy(() -> driver.memory().memAlloc(1, 64)).isInstanceOf(CudaException.class);
    assertThat(library.mode()).isEqualTo(GLOBAL);
    library.makeCurrent(0xc000);
    library.fail("cuCtxSetCurrent", 2);
    assertThatThrownBy(() -> driver.memory().memAlloc(1, 64)).isInstanceOf(CudaException.class);
    assertThat(library.mode()).isEqualTo(GLOBAL);
  }

  @Test
  void callsOfVirtualThreads_areRelaxed_andLeaveTheirCarriersAsTheyWere() throws Exception {
    Thread[] threads = new Thread[64];
    for (int i = 0; i < threads.length; i++) {
      threads[i] =
          Thread.ofVirtual()
              .start(() -> {
                for (int turn = 0; turn < 20; turn++) {
                  driver.memory().memAlloc(1, 64);
                  assertThat(library.mode()).isEqualTo(GLOBAL);
                  Thread.yield();
                }
              });
    }
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(library.notRelaxed()).containsOnly("cuCtxSetCurrent@4000");
  }

  @Test
  void queuedWorkAndQuestionsAboutCaptures_arePassedOnAsTheyAre() {
    driver.events().eventRecord(1, 0x7, 0x5);
    driver.streams().streamWaitEvent(1, 0x5, 0x7);
    driver.transfers().memcpyAsync(1, 64, 128, 8, 0x5);
    driver.transfers().memsetD8Async(1, 64, (byte) 1, 8, 0x5);
    driver.captures().streamIsCapturing(1, 0x5);
    assertThat(library.notRelaxed())
        .containsExactly(
            "cuEventRecord@2000",
            "cuStreamWaitEvent@3020",
            "cuMemcpyAsync@4000",
            "cuMemsetD8Async@3020",
            "cuStreamIsCapturing@10000");
  }

  @Test
  void callsAboutStreamsAndEvents_needNoContext_unlessTheDriverSaysSo() {
    library.makeCurrent(0);
    driver.streams().streamQuery(1, 0x5);
    driver.events().eventQuery(1, 0x7);
    driver.streams().streamQuery(1, 0);
    noted(
        "cuStreamQuery@2000(5) in 0",
        "cuEventQuery@2000(7) in 0",
        "cuCtxSetCurrent@4000(c001) in 0",
        "cuStreamQuery@2000(0) in c001");
    library.reset();
    library.makeCurrent(0xc000);
    library.fail("cuStreamQuery", 201);
    assertThatThrownBy(() -> driver.streams().streamQuery(1, 0x5))
        .isInstanceOf(CudaException.class);
    noted(
        "cuStreamQuery@2000(5) in c000",
        "cuCtxSetCurrent@4000(c001) in c000",
        "cuStreamQuery@2000(5) in c001",
        "cuCtxSetCurrent@4000(c000) in c001");
    assertThat(library.mode()).isEqualTo(GLOBAL);
  }
}
