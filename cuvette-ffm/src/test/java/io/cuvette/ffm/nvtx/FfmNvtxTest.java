package io.cuvette.ffm.nvtx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.cuvette.driver.CudaDriver;
import io.cuvette.driver.NvtxAttributes;
import io.cuvette.driver.NvtxCalls;
import io.cuvette.ffm.CCompiler;
import io.cuvette.ffm.FfmDriverProvider;
import io.cuvette.ffm.FreshLoader;
import io.cuvette.instrument.NvtxMemoryDriver;
import java.io.InputStream;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.function.BiConsumer;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Each call of NVTX reaches a tool with each argument in place, and its result comes back: through
 * the tables that the tool is given, and through a library that stands for the interop library.
 */
class FfmNvtxTest {
  private static final String PROPERTY = "cuvette.nvtx";

  @TempDir private Path folder;

  private Path log(Path library) {
    return folder.resolve(library.getFileName() + ".log");
  }

  private Path compile(String name, String... defines) throws Exception {
    Path source = folder.resolve("stub_nvtx.c");
    try (InputStream text = CCompiler.class.getResourceAsStream("stub_nvtx.c")) {
      Files.write(source, text.readAllBytes());
    }
    Path library = folder.resolve(name);
    String[] options =
        Stream.concat(
                Stream.of("-shared", "-fPIC", "-DLOG=\"" + log(library) + "\""), Stream.of(defines))
            .toArray(String[]::new);
    return CCompiler.compile(source, library, options);
  }

  private Path interop() throws Exception {
    return compile("libinterop.so", "-DINTEROP");
  }

  private static <T> T with(String file, Callable<T> body) throws Exception {
    String before = System.getProperty(PROPERTY);
    System.setProperty(PROPERTY, file);
    try {
      return body.call();
    } finally {
      if (before == null) {
        System.clearProperty(PROPERTY);
      } else {
        System.setProperty(PROPERTY, before);
      }
    }
  }

  private void check(Path library, NvtxCalls calls, BiConsumer<NvtxCalls, List<String>> use)
      throws Exception {
    List<String> expected = new ArrayList<>();
    use.accept(calls, expected);
    assertThat(Files.readAllLines(log(library))).containsExactlyElementsOf(expected);
    Files.delete(log(library));
    assertThat(calls.isListening()).isTrue();
    assertThat(calls.library()).isEqualTo(library.toString());
  }

  private void checkAll(Path library, NvtxCalls calls) throws Exception {
    check(library, calls, FfmNvtxTest::everyCall);
    check(library, calls, FfmNvtxTest::events);
  }

  private static void everyCall(NvtxCalls calls, List<String> expected) {
    NvtxAttributes plain = new NvtxAttributes("plain", 0, 0, false, 0, 0, 0);
    String shown = " plain category 0 v3/48";
    long domain = calls.domainCreate("sol\u00efver");
    assertThat(domain).isPositive();
    calls.domainNameCategory(domain, -2, "solve");
    calls.nameDevice(-1, "second");
    calls.nameStream(1L << 40, "copies");
    calls.domainMark(domain, plain);
    calls.domainRangePush(1L << 33, plain);
    calls.domainRangePop(-1L << 33);
    long first = calls.domainRangeStart(domain, plain);
    long second = calls.domainRangeStart(domain, plain);
    assertThat(second).isEqualTo(first + 1);
    calls.domainRangeEnd(domain, 1L << 41);
    long heap = calls.memHeapRegister(1L << 42, 1L << 34, "pool");
    assertThat(heap).isEqualTo(0x77);
    calls.memRegionRegister(1L << 44, (1L << 42) + 512, (1L << 35) + 1);
    calls.memRegionUnregister((1L << 42) + 512);
    calls.memHeapUnregister(1L << 45);
    long memory = domain + 1;
    expected.addAll(
        List.of(
            "domain sol\u00efver",
            "category solve " + domain + " 4294967294",
            "device second -1",
            "stream copies " + (1L << 40),
            "mark " + domain + shown,
            "push " + (1L << 33) + shown,
            "pop " + (-1L << 33),
            "start " + domain + shown,
            "start " + domain + shown,
            "end " + domain + " " + (1L << 41),
            "domain Cuvette",
            "in "
                + memory
                + " heap pool 4398046511104+17179869184 usage 1 type 1 v102/48"
                + " range 16 text 1",
            "in "
                + memory
                + " region of 17592186044416: 4398046511616+34359738369"
                + " count 1 step 16 type 1 v102/48 out 1",
            "in " + memory + " region end 4398046511616 count 1 step 8 kind 1 v102/32",
            "in " + memory + " heap end " + (1L << 45)));
  }

  /** Marks, pushes and starts with whatever can be shown. */
  private static void events(NvtxCalls calls, List<String> expected) {
    Random random = new Random(5);
    long text = calls.domainRegisterString(3, "kept \u20ac");
    expected.add("register kept \u20ac 3");
    for (int i = 0; i < 200; i++) {
      boolean registered = random.nextBoolean();
      boolean hasColor = random.nextBoolean();
      int category = random.nextInt();
      int color = random.nextInt();
      int type = List.of(0, NvtxAttributes.INT64, NvtxAttributes.DOUBLE).get(random.nextInt(3));
      double real = random.nextInt(-4000, 4000) / 8.0;
      long payload =
          type == NvtxAttributes.DOUBLE ? Double.doubleToLongBits(real) : ~random.nextLong();
      NvtxAttributes event =
          new NvtxAttributes(
              "message " + i, registered ? text : 0, category, hasColor, color, type, payload);
      String call = List.of("mark", "push", "start").get(random.nextInt(3));
      switch (call) {
        case "mark" -> calls.domainMark(i, event);
        case "push" -> calls.domainRangePush(i, event);
        default -> assertThat(calls.domainRangeStart(i, event)).isPositive();
      }
      String number =
          real == Math.rint(real)
              ? Long.toString((long) real)
              : String.format(Locale.ROOT, "%s", real);
      expected.add(
          "%s %d %s category %s%s%s v3/48"
              .formatted(
                  call,
                  i,
                  registered ? "registered kept \u20ac" : "message " + i,
                  Integer.toUnsignedString(category),
                  hasColor ? " color %08X".formatted(color) : "",
                  switch (type) {
                    case NvtxAttributes.INT64 -> " payload " + payload;
                    case NvtxAttributes.DOUBLE -> " payload " + number;
                    default -> "";
                  }));
    }
  }

  @Test
  void toolThatIsGivenTables_getsEveryCall() throws Exception {
    Path tool = compile("libtool.so");
    checkAll(tool, new FfmNvtx(InjectedTool.attach(tool.toString())));
  }

  @Test
  void interopLibrary_getsEveryCall() throws Exception {
    Path library = interop();
    Optional<InteropLibrary> found = with(library.toString(), InteropLibrary::find);
    checkAll(library, new FfmNvtx(found.orElseThrow()));
    assertThat(found.orElseThrow().find("nvtxNoSuchFunction")).isZero();
  }

  @Test
  void functionThatNobodyHas_doesNothing() throws Exception {
    Path other = compile("libother.so");
    Path tool = compile("libnone.so");
    InjectedTool attached = InjectedTool.attach(other.toString());
    assertThat(attached.find("nvtxDomainDestroy")).isZero();
    NvtxCalls none = new FfmNvtx(new InteropLibrary(tool.toString(), name -> Optional.empty()));
    NvtxAttributes plain = new NvtxAttributes("plain", 0, 0, false, 0, 0, 0);
    none.domainMark(1, plain);
    none.domainRangePush(1, plain);
    none.domainRangePop(1);
    none.domainRangeEnd(1, 2);
    none.nameDevice(1, "a");
    assertThat(none.domainCreate("a")).isZero();
    assertThat(none.domainRangeStart(1, plain)).isZero();
    assertThat(none.domainRegisterString(1, "a")).isZero();
    assertThat(none.memHeapRegister(1, 2, "a")).isZero();
  }

  @Test
  void libraryThatIsNamedByTheProperty_isTheOnlyOneThatIsLookedFor() throws Exception {
    String nothing = folder.resolve("libnothing.so").toString();
    String tool = compile("libtool.so").toString(); // without a function of NVTX
    for (String name : List.of("", " ", nothing, tool)) {
      Optional<InteropLibrary> found = with(name, InteropLibrary::find);
      assertThat(found).as(name).isEmpty();
    }
  }

  @Test
  void libraryThatNobodyNames_isLookedFor_andMayBeMissing() {
    String before = System.clearProperty(PROPERTY);
    try {
      assertThat(InteropLibrary.find()).isNotNull();
    } finally {
      if (before != null) {
        System.setProperty(PROPERTY, before);
      }
    }
  }

  @Test
  void toolThatRefuses_orIsNone_isNotAttached() throws Exception {
    Path refusing = compile("librefuses.so", "-DREFUSES");
    assertThatThrownBy(() -> InjectedTool.attach(refusing.toString()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("InitializeInjectionNvtx2 of " + refusing + " returned 0");
    Path useless = Files.writeString(folder.resolve("useless.c"), "int unused;");
    Path none = CCompiler.compile(useless, folder.resolve("libuseless.so"), "-shared", "-fPIC");
    assertThatThrownBy(() -> InjectedTool.attach(none.toString()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage(none + " has no function InitializeInjectionNvtx2");
    assertThatThrownBy(() -> InjectedTool.attach(folder.resolve("libnothing.so").toString()))
        .isInstanceOf(IllegalArgumentException.class);
  }

  /** A tool listens behind the interop library where that gives a domain. */
  @Test
  void interopLibrary_isUsedWhereATool_listensBehindIt() throws Exception {
    String tool = System.getenv("NVTX_INJECTION64_PATH");
    assumeTrue(tool == null || tool.isBlank(), "a tool is named");
    Path library = interop();
    NvtxCalls calls = with(library.toString(), FfmNvtxTest::fresh);
    assertThat(Files.readAllLines(log(library))).containsExactly("domain Cuvette");
    Files.delete(log(library));
    checkAll(library, calls);
    Path silent = compile("libsilent.so", "-DINTEROP", "-DSILENT");
    assertThat(with(silent.toString(), FfmNvtxTest::fresh).isListening()).isFalse();
    NvtxCalls deaf = with("", FfmNvtxTest::fresh);
    assertThat(deaf.isListening()).isFalse();
    List<ThrowingCallable> uses =
        List.of(deaf::library, () -> deaf.nameDevice(0, "a"), () -> deaf.domainRangePop(1));
    assertThat(uses)
        .allSatisfy(use ->
            assertThatThrownBy(use)
                .isInstanceOf(NullPointerException.class)
                .hasMessage("no tool listens"));
    assertThat(with(library.toString(), FfmNvtxTest::isFound)).isTrue();
    assertThat(with(silent.toString(), FfmNvtxTest::isFound)).isFalse();
    assertThat(with(library.toString(), FfmNvtxTest::isDecorated)).isTrue();
    assertThat(with(silent.toString(), FfmNvtxTest::isDecorated)).isFalse();
  }

  private static NvtxCalls fresh() throws Exception {
    return (NvtxCalls)
        new FreshLoader().loadClass(FfmNvtx.class.getName()).getConstructor().newInstance();
  }

  private static FreshLoader loader() {
    return new FreshLoader(
        "io.cuvette.",
        ClassLoader.getPlatformClassLoader(),
        FfmDriverProvider.class,
        NvtxCalls.class);
  }

  /** Whether a tool learns of the memory of a driver of devices. */
  private static boolean isDecorated() throws Exception {
    FreshLoader loader = loader();
    Class<?> type = loader.loadClass(CudaDriver.class.getName());
    Object driver = stub(loader, type);
    Class<?> decorator = loader.loadClass(NvtxMemoryDriver.class.getName());
    return decorator.getMethod("over", type).invoke(null, driver) != driver;
  }

  /** Something that does nothing, whose parts do nothing. */
  private static Object stub(ClassLoader loader, Class<?> type) {
    return Proxy.newProxyInstance(
        loader,
        new Class<?>[] {type},
        (_, method, _) -> {
          Class<?> given = method.getReturnType();
          return given == boolean.class
              ? (Object) false
              : given.isInterface() ? stub(loader, given) : null;
        });
  }

  private static boolean isFound() throws Exception {
    Class<?> calls = loader().loadClass(NvtxCalls.class.getName());
    return ((Optional<?>) calls.getMethod("find").invoke(null)).isPresent();
  }

  /** Where a tool follows no memory, the interop library gives a handle that is none. */
  @Test
  void heapOfNobody_isZero() throws Exception {
    Path silent = compile("libsilent.so", "-DINTEROP", "-DSILENT");
    Optional<InteropLibrary> found = with(silent.toString(), InteropLibrary::find);
    assertThat(new FfmNvtx(found.orElseThrow()).memHeapRegister(1, 2, "a")).isZero();
  }
}
