package io.cuvette.mutations;

import java.io.File;
import java.io.IOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.classfile.CodeElement;
import java.lang.classfile.CodeTransform;
import java.lang.classfile.Instruction;
import java.lang.classfile.instruction.LineNumber;
import java.lang.constant.ClassDesc;
import java.lang.constant.ConstantDescs;
import java.lang.constant.MethodTypeDesc;
import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.nio.file.Path;
import java.security.ProtectionDomain;
import java.util.HashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Changes classes in a JVM of tests, whichever loader they come from: all of them, to note the
 * lines that run, or one of them, to try a change.
 */
public final class Agent implements ClassFileTransformer {
  /** The folders of the classes whose lines are noted; no property: none are. */
  static final String LINES_OF = "cuvette.mutations.lines";

  private static final ClassDesc PROBE = Probe.class.describeConstable().orElseThrow();
  private static final MethodTypeDesc HIT =
      MethodTypeDesc.of(ConstantDescs.CD_void, ConstantDescs.CD_int);

  /** Looks at files for what a class extends: to load one here would load it twice. */
  private static final ClassFile FORMAT =
      ClassFile.of(
          ClassFile.ClassHierarchyResolverOption.of(
              ClassHierarchyResolver.ofResourceParsing(ClassLoader.getSystemClassLoader())
                  .cached()));

  private static @Nullable Agent installed;

  private final Instrumentation jvm;
  private final Set<String> noted;
  private final Map<String, Integer> numbers = new ConcurrentHashMap<>();
  private final AtomicInteger next = new AtomicInteger();

  private volatile @Nullable String changed;
  private volatile byte @Nullable [] bytes;

  private Agent(Instrumentation jvm, Set<String> noted) {
    this.jvm = jvm;
    this.noted = noted;
  }

  /** Called by the JVM before the program. */
  public static void premain(String arguments, Instrumentation jvm) throws IOException {
    Set<String> noted = new HashSet<>();
    for (String folder : System.getProperty(LINES_OF, "").split(File.pathSeparator, -1)) {
      if (!folder.isEmpty()) {
        Changes.classNames(Path.of(folder)).forEach(name -> noted.add(name.replace('.', '/')));
      }
    }
    installed = new Agent(jvm, noted);
    jvm.addTransformer(installed, true);
  }

  static Agent installed() {
    return Objects.requireNonNull(installed, "the JVM was started without this agent");
  }

  /** The lines that ran since the last call: {@code class:line:line}, and again. */
  String takeLines() {
    Map<String, String> ran = new TreeMap<>();
    numbers.forEach((line, number) -> {
      if (Probe.isHit(number)) {
        int end = line.indexOf(':');
        ran.merge(line.substring(0, end), line.substring(end), String::concat);
      }
    });
    return ran.entrySet().stream()
        .map(each -> each.getKey() + each.getValue())
        .collect(Collectors.joining(" "));
  }

  /** Has a class have these bytes, also where it is loaded later, until {@link #restore}. */
  void change(String name, byte[] to) throws UnmodifiableClassException {
    bytes = to;
    changed = name;
    retransform(name);
  }

  /** Has the changed class be as it was. */
  void restore() throws UnmodifiableClassException {
    String name = Objects.requireNonNull(changed, "nothing is changed");
    changed = null;
    retransform(name);
  }

  private void retransform(String name) throws UnmodifiableClassException {
    String binary = name.replace('/', '.');
    Class<?>[] loaded =
        Stream.of(jvm.getAllLoadedClasses())
            .filter(each -> each.getName().equals(binary))
            .toArray(Class<?>[]::new);
    if (loaded.length > 0) {
      jvm.retransformClasses(loaded);
    }
  }

  @Override
  public byte @Nullable [] transform(
      @Nullable ClassLoader loader,
      @Nullable String name,
      @Nullable Class<?> type,
      @Nullable ProtectionDomain domain,
      byte[] original) {
    if (name == null) {
      return null;
    }
    return noted.contains(name) ? withProbes(name, original) : name.equals(changed) ? bytes : null;
  }

  private byte[] withProbes(String name, byte[] original) {
    return FORMAT.transformClass(
        FORMAT.parse(original),
        ClassTransform.transformingMethodBodies(CodeTransform.ofStateful(() -> probes(name))));
  }

  private CodeTransform probes(String name) {
    return new CodeTransform() {
      private int line = -1;

      @Override
      public void accept(CodeBuilder code, CodeElement element) {
        if (element instanceof LineNumber number) {
          line = number.line();
        } else if (element instanceof Instruction && line >= 0) {
          code.loadConstant(number(name + ":" + line));
          code.invokestatic(PROBE, "hit", HIT);
          line = -1;
        }
        code.with(element);
      }
    };
  }

  private int number(String line) {
    return numbers.computeIfAbsent(line, _ -> next.getAndIncrement());
  }
}
