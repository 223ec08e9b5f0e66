package io.cuvette.internal.program;

import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.net.URI;
import java.nio.channels.SeekableByteChannel;
import java.nio.file.AccessMode;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.CopyOption;
import java.nio.file.DirectoryStream;
import java.nio.file.FileStore;
import java.nio.file.FileSystem;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.OpenOption;
import java.nio.file.Path;
import java.nio.file.PathMatcher;
import java.nio.file.StandardCopyOption;
import java.nio.file.WatchService;
import java.nio.file.attribute.BasicFileAttributeView;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.FileAttributeView;
import java.nio.file.attribute.UserPrincipalLookupService;
import java.nio.file.spi.FileSystemProvider;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.StreamSupport;
import org.jspecify.annotations.Nullable;

/** The usual files as a system has them that knows no owners, and moves nothing at once. */
final class PlainFiles extends FileSystem {
  private final FileSystemProvider provider = new Provider();

  /** What is not there yet when it is looked for next. */
  private @Nullable Path missed;

  void missOnce(Path real) {
    missed = real;
  }

  /** A path of this file system, for one of the usual. */
  Path path(Path real) {
    return (Path)
        Proxy.newProxyInstance(
            Path.class.getClassLoader(), new Class<?>[] {Path.class}, new Calls(real));
  }

  private static Object real(Object one) {
    return one instanceof Path && Proxy.isProxyClass(one.getClass())
        ? ((Calls) Proxy.getInvocationHandler(one)).real
        : one;
  }

  private static Path realPath(Path path) {
    return (Path) real(path);
  }

  private final class Calls implements InvocationHandler {
    private final Path real;

    private Calls(Path real) {
      this.real = real;
    }

    @Override
    public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
      if (method.getName().equals("getFileSystem")) {
        return PlainFiles.this;
      }
      Object[] given = arguments == null ? new Object[0] : arguments.clone();
      Arrays.setAll(given, i -> real(given[i]));
      try {
        Object result = method.invoke(real, given);
        return result instanceof Path made ? path(made) : result;
      } catch (InvocationTargetException e) {
        throw e.getCause();
      }
    }
  }

  private final class Provider extends FileSystemProvider {
    @Override
    public String getScheme() {
      return "plain";
    }

    @Override
    public FileSystem newFileSystem(URI uri, Map<String, ?> environment) {
      throw new UnsupportedOperationException();
    }

    @Override
    public FileSystem getFileSystem(URI uri) {
      throw new UnsupportedOperationException();
    }

    @Override
    public Path getPath(URI uri) {
      throw new UnsupportedOperationException();
    }

    private static void checkPlain(FileAttribute<?>... attributes) {
      if (attributes.length > 0) {
        throw new UnsupportedOperationException("no attribute " + attributes[0].name());
      }
    }

    @Override
    public SeekableByteChannel newByteChannel(
        Path path, Set<? extends OpenOption> options, FileAttribute<?>... attributes)
        throws IOException {
      checkPlain(attributes);
      return Files.newByteChannel(realPath(path), options);
    }

    @Override
    public DirectoryStream<Path> newDirectoryStream(
        Path folder, DirectoryStream.Filter<? super Path> filter) throws IOException {
      DirectoryStream<Path> all = Files.newDirectoryStream(realPath(folder));
      return new DirectoryStream<>() {
        @Override
        public Iterator<Path> iterator() {
          return StreamSupport.stream(all.spliterator(), false)
              .map(PlainFiles.this::path)
              .iterator();
        }

        @Override
        public void close() throws IOException {
          all.close();
        }
      };
    }

    @Override
    public void createDirectory(Path folder, FileAttribute<?>... attributes) throws IOException {
      checkPlain(attributes);
      Files.createDirectory(realPath(folder));
    }

    @Override
    public void delete(Path path) throws IOException {
      Files.delete(realPath(path));
    }

    @Override
    public void copy(Path from, Path to, CopyOption... options) throws IOException {
      Files.copy(realPath(from), realPath(to), options);
    }

    @Override
    public void move(Path from, Path to, CopyOption... options) throws IOException {
      if (List.of(options).contains(StandardCopyOption.ATOMIC_MOVE)) {
        throw new AtomicMoveNotSupportedException(from.toString(), to.toString(), "in two steps");
      }
      Files.move(realPath(from), realPath(to), options);
    }

    @Override
    public boolean isSameFile(Path one, Path other) throws IOException {
      return Files.isSameFile(realPath(one), realPath(other));
    }

    @Override
    public boolean isHidden(Path path) throws IOException {
      return Files.isHidden(realPath(path));
    }

    @Override
    public FileStore getFileStore(Path path) throws IOException {
      return Files.getFileStore(realPath(path));
    }

    @Override
    public void checkAccess(Path path, AccessMode... modes) throws IOException {
      realPath(path).getFileSystem().provider().checkAccess(realPath(path), modes);
    }

    @Override
    public <V extends FileAttributeView> V getFileAttributeView(
        Path path, Class<V> type, LinkOption... options) {
      return type == BasicFileAttributeView.class
          ? Files.getFileAttributeView(realPath(path), type, options)
          : null;
    }

    @Override
    public <A extends BasicFileAttributes> A readAttributes(
        Path path, Class<A> type, LinkOption... options) throws IOException {
      if (type != BasicFileAttributes.class) {
        throw new UnsupportedOperationException("no attributes " + type);
      }
      Path real = realPath(path);
      if (real.equals(missed)) {
        missed = null;
        throw new NoSuchFileException(real.toString());
      }
      return Files.readAttributes(real, type, options);
    }

    @Override
    public Map<String, Object> readAttributes(Path path, String names, LinkOption... options) {
      throw new UnsupportedOperationException("no attributes " + names);
    }

    @Override
    public void setAttribute(Path path, String name, Object value, LinkOption... options) {
      throw new UnsupportedOperationException("no attribute " + name);
    }
  }

  @Override
  public FileSystemProvider provider() {
    return provider;
  }

  @Override
  public void close() {}

  @Override
  public boolean isOpen() {
    return true;
  }

  @Override
  public boolean isReadOnly() {
    return false;
  }

  @Override
  public String getSeparator() {
    return "/";
  }

  @Override
  public Iterable<Path> getRootDirectories() {
    return List.of(path(Path.of("/")));
  }

  @Override
  public Iterable<FileStore> getFileStores() {
    return List.of();
  }

  @Override
  public Set<String> supportedFileAttributeViews() {
    return Set.of("basic");
  }

  @Override
  public Path getPath(String first, String... more) {
    return path(Path.of(first, more));
  }

  @Override
  public PathMatcher getPathMatcher(String pattern) {
    throw new UnsupportedOperationException();
  }

  @Override
  public UserPrincipalLookupService getUserPrincipalLookupService() {
    throw new UnsupportedOperationException();
  }

  @Override
  public WatchService newWatchService() {
    throw new UnsupportedOperationException();
  }
}
