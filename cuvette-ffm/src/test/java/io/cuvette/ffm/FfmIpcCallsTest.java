package io.cuvette.ffm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.CudaException;
import io.cuvette.driver.CudaStatus;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Calls about other processes reach their function with each argument and structure in place. */
class FfmIpcCallsTest {
  private static final long BIG = 0x7654_3210_fedcL;

  /** What the library fills handles with: 64 different bytes from 200 on. */
  private static final byte[] FILLED = bytes(200, 64);

  private static final byte[] HANDLE = bytes(100, 64);
  private static final String TEXT = HexFormat.of().formatHex(HANDLE);

  private StubLibrary library;
  private CudaDriver driver;

  @BeforeEach
  void open(@TempDir Path folder) {
    library = StubLibrary.compile(folder);
    driver = library.open();
    driver.devices().memGetInfo(1); // retains the context
    library.makeCurrent(0);
    library.reset();
    library.answer(BIG, 0);
  }

  @AfterEach
  void close() {
    if (driver != null) {
      driver.close();
    }
  }

  private static byte[] bytes(int first, int length) {
    byte[] bytes = new byte[length];
    for (int i = 0; i < length; i++) {
      bytes[i] = (byte) (first + i);
    }
    return bytes;
  }

  /** The calls but for those about the current context. */
  private void noted(String... calls) {
    assertThat(library.calls().stream().filter(call -> !call.startsWith("cuCtx")))
        .containsExactly(calls);
  }

  @Test
  void pool_isExportedAsADescriptor() {
    library.answer(-1L << 32 | 77, -1);
    assertThat(driver.sharing().memPoolExportToShareableHandle(BIG)).isEqualTo(77);
    noted("cuMemPoolExportToShareableHandle@11020(76543210fedc, 1, 0) in 0");
  }

  @Test
  void pool_isImportedByADescriptorInPlaceOfAPointer() {
    assertThat(driver.sharing().memPoolImportFromShareableHandle(77)).isEqualTo(BIG);
    assertThat(driver.sharing().memPoolImportFromShareableHandle(-1)).isEqualTo(BIG);
    noted(
        "cuMemPoolImportFromShareableHandle@11020(77, 1, 0) in 0",
        "cuMemPoolImportFromShareableHandle@11020(-1, 1, 0) in 0");
  }

  @Test
  void pointerOfAPool_isExportedAndImportedAs64Bytes() {
    assertThat(driver.sharing().memPoolExportPointer(BIG)).isEqualTo(FILLED);
    assertThat(driver.sharing().memPoolImportPointer(9, HANDLE)).isEqualTo(BIG);
    noted(
        "cuMemPoolExportPointer@11020(76543210fedc) in 0",
        "cuMemPoolImportPointer@11020(9, " + TEXT + ") in 0");
  }

  /** The structure is passed by value, and the flags behind it arrive. */
  @Test
  void memory_isOpenedInTheDevicesContext() {
    assertThat(driver.sharing().ipcGetMemHandle(1, BIG)).isEqualTo(FILLED);
    assertThat(driver.sharing().ipcOpenMemHandle(1, HANDLE)).isEqualTo(BIG);
    driver.sharing().ipcCloseMemHandle(1, BIG);
    noted(
        "cuIpcGetMemHandle@4010(76543210fedc) in c001",
        "cuIpcOpenMemHandle@11000(" + TEXT + ", 1) in c001",
        "cuIpcCloseMemHandle@4010(76543210fedc) in c001");
  }

  @Test
  void event_isOpenedInTheDevicesContext() {
    assertThat(driver.sharing().ipcGetEventHandle(1, 6)).isEqualTo(FILLED);
    assertThat(driver.sharing().ipcOpenEventHandle(1, HANDLE)).isEqualTo(BIG);
    noted("cuIpcGetEventHandle@4010(6) in c001", "cuIpcOpenEventHandle@4010(" + TEXT + ") in c001");
  }

  @Test
  void handleOfAnotherLength_isRefusedBeforeTheDriverReadsIt() {
    for (int length : new int[] {0, 63, 65, 1 << 20}) {
      byte[] wrong = new byte[length];
      List<ThrowingCallable> calls =
          List.of(
              () -> driver.sharing().memPoolImportPointer(9, wrong),
              () -> driver.sharing().ipcOpenMemHandle(1, wrong),
              () -> driver.sharing().ipcOpenEventHandle(1, wrong));
      assertThat(calls)
          .allSatisfy(call ->
              assertThatThrownBy(call)
                  .isInstanceOf(IllegalArgumentException.class)
                  .hasMessage("handle: " + length + " bytes (expected: 64)"));
    }
    noted();
  }

  @Test
  void handlesArePassedAsTheyAre_andNotKept() {
    byte[] handle = HANDLE.clone();
    driver.sharing().ipcOpenMemHandle(1, handle);
    assertThat(handle).isEqualTo(HANDLE);
    byte[] exported = driver.sharing().ipcGetMemHandle(1, BIG);
    exported[0] = 0;
    assertThat(driver.sharing().ipcGetMemHandle(1, BIG)).isEqualTo(FILLED);
  }

  @Test
  void unknownDevice_isAnError() {
    List<ThrowingCallable> calls =
        List.of(
            () -> driver.sharing().ipcGetMemHandle(2, BIG),
            () -> driver.sharing().ipcOpenMemHandle(2, HANDLE),
            () -> driver.sharing().ipcCloseMemHandle(-1, BIG),
            () -> driver.sharing().ipcGetEventHandle(2, 6),
            () -> driver.sharing().ipcOpenEventHandle(2, HANDLE),
            () -> driver.memory().memRangeGetAttributeList(2, 3, BIG, 64, 3));
    assertThat(calls)
        .allSatisfy(call ->
            assertThatThrownBy(call)
                .isInstanceOfSatisfying(
                    CudaException.class,
                    e -> assertThat(e.status()).isEqualTo(CudaStatus.INVALID_DEVICE)));
    noted();
  }

  @Test
  void listOfARange_hasAsManyPlacesAsAreAskedFor() {
    library.answer(-1L << 32, -2L << 32 | 1);
    assertThat(driver.memory().memRangeGetAttributeList(1, 3, BIG, 4096, 4))
        .containsExactly(0, -1, 1, -2);
    assertThat(driver.memory().memRangeGetAttributeList(1, 3, BIG, 4096, 1)).containsExactly(0);
    noted(
        "cuMemRangeGetAttribute@8000(16, 3, 76543210fedc, 4096) in c001",
        "cuMemRangeGetAttribute@8000(4, 3, 76543210fedc, 4096) in c001");
  }

  @Test
  void listOfNoPlaces_isInvalid() {
    for (int count : new int[] {0, -1}) {
      assertThatThrownBy(() -> driver.memory().memRangeGetAttributeList(1, 3, 0xab, 4096, count))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining(
              "bytes=4096, count=" + count + ", device=1): CUDA_ERROR_INVALID_VALUE (1)");
    }
    noted();
  }

  @Test
  void functionThatTheDriverLacks_saysSoWhenItIsCalled(@TempDir Path folder) {
    StubLibrary old = StubLibrary.compile(folder);
    old.hide("cuMemPoolImportPointer");
    try (CudaDriver without = old.open()) {
      assertThatThrownBy(() -> without.sharing().memPoolImportPointer(9, HANDLE))
          .isInstanceOf(CudaException.class)
          .hasMessageContaining("the driver does not have cuMemPoolImportPointer as of CUDA 11.2");
      assertThat(without.sharing().ipcGetMemHandle(0, BIG)).isEqualTo(FILLED);
    }
  }

  @Test
  void afterClose_everyCallFails() {
    driver.close();
    List<ThrowingCallable> calls =
        List.of(
            () -> driver.sharing().memPoolExportToShareableHandle(9),
            () -> driver.sharing().memPoolImportFromShareableHandle(9),
            () -> driver.sharing().memPoolExportPointer(9),
            () -> driver.sharing().memPoolImportPointer(9, HANDLE),
            () -> driver.sharing().ipcGetMemHandle(0, 9),
            () -> driver.sharing().ipcOpenMemHandle(0, HANDLE),
            () -> driver.sharing().ipcCloseMemHandle(0, 9),
            () -> driver.sharing().ipcGetEventHandle(0, 9),
            () -> driver.sharing().ipcOpenEventHandle(0, HANDLE),
            () -> driver.memory().memRangeGetAttributeList(0, 3, 9, 8, 1));
    assertThat(calls)
        .allSatisfy(call ->
            assertThatThrownBy(call)
                .isInstanceOf(IllegalStateException.class)
                .hasMessage("driver ffm is closed"));
  }
}
