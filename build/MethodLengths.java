import com.sun.source.tree.CompilationUnitTree;
import com.sun.source.tree.MethodTree;
import com.sun.source.util.JavacTask;
import com.sun.source.util.SourcePositions;
import com.sun.source.util.TreeScanner;
import com.sun.source.util.Trees;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/**
 * Finds methods that are too long, from one brace to the other, where Checkstyle does not: in tests
 * and in programs of the build. The compiler's parser takes a tenth of the time that Checkstyle's
 * does.
 */
final class MethodLengths {
  private static final int MOST = 60;

  /** Files whose trees are in memory together. */
  private static final int TOGETHER = 100;

  private MethodLengths() {}

  /** Prints the methods that are too long; returns how many there are. */
  static int check(List<Path> files) throws IOException {
    JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
    int result = 0;
    try (StandardJavaFileManager manager =
        compiler.getStandardFileManager(null, Locale.ROOT, StandardCharsets.UTF_8)) {
      for (int from = 0; from < files.size(); from += TOGETHER) {
        List<Path> part = files.subList(from, Math.min(from + TOGETHER, files.size()));
        JavacTask task =
            (JavacTask)
                compiler.getTask(
                    null, manager, null, null, null, manager.getJavaFileObjectsFromPaths(part));
        SourcePositions positions = Trees.instance(task).getSourcePositions();
        for (CompilationUnitTree unit : task.parse()) {
          result += new Scanner(unit, positions).count();
        }
      }
    }
    return result;
  }

  private static final class Scanner extends TreeScanner<Void, Void> {
    private final CompilationUnitTree unit;
    private final SourcePositions positions;
    private int found;

    Scanner(CompilationUnitTree unit, SourcePositions positions) {
      this.unit = unit;
      this.positions = positions;
    }

    int count() {
      scan(unit, null);
      return found;
    }

    @Override
    public Void visitMethod(MethodTree method, Void none) {
      if (method.getBody() != null) {
        long first = line(positions.getStartPosition(unit, method.getBody()));
        long last = line(positions.getEndPosition(unit, method.getBody()) - 1);
        long lines = last - first + 1;
        if (lines > MOST) {
          found++;
          System.err.printf(
              "%s:%d: %s: %d lines (expected: <= %d)%n",
              unit.getSourceFile().getName(), first, method.getName(), lines, MOST);
        }
      }
      return super.visitMethod(method, none);
    }

    private long line(long position) {
      return unit.getLineMap().getLineNumber(position);
    }
  }
}
