package io.cuvette.ffm.linux;

import static org.assertj.core.api.Assertions.assertThat;

import io.cuvette.ffm.CCompiler;
import io.cuvette.ffm.FfmDescriptors;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** What is written down of the C library's headers is what they say; skipped without a compiler. */
@EnabledOnOs(OS.LINUX)
class LinuxHeadersTest {
  private static final String INCLUDES =
      """
      #define _GNU_SOURCE
      #include <errno.h>
      #include <fcntl.h>
      #include <poll.h>
      #include <stddef.h>
      #include <stdio.h>
      #include <linux/kcmp.h>
      #include <linux/magic.h>
      #include <sys/file.h>
      #include <sys/mman.h>
      #include <sys/socket.h>
      #include <sys/stat.h>
      #include <sys/syscall.h>
      #include <sys/vfs.h>
      #include <sys/un.h>
      int main(void) {
      """;

  @TempDir private Path folder;
  private final Map<String, Long> expected = new LinkedHashMap<>();

  private void says(String expression, long value) {
    expected.put(expression, value);
  }

  private void compare() throws Exception {
    StringBuilder program = new StringBuilder(INCLUDES);
    for (String expression : expected.keySet()) {
      program.append("printf(\"%lld\\n\", (long long)(").append(expression).append("));\n");
    }
    Path source = Files.writeString(folder.resolve("values.c"), program.append("}\n"));
    Path binary = CCompiler.compile(source, folder.resolve("values"));
    List<Long> values =
        CCompiler.run(List.of(binary.toString())).lines().map(Long::parseLong).toList();
    Map<String, Long> found = new LinkedHashMap<>();
    int line = 0;
    for (String expression : expected.keySet()) {
      found.put(expression, values.get(line++));
    }
    assertThat(found).isEqualTo(expected);
  }

  @Test
  void constants_areThoseOfTheHeaders() throws Exception {
    says("MFD_CLOEXEC", MemoryFiles.MFD_CLOEXEC);
    says("MFD_ALLOW_SEALING", MemoryFiles.MFD_ALLOW_SEALING);
    says("F_ADD_SEALS", MemoryFiles.F_ADD_SEALS);
    says("F_GET_SEALS", MemoryFiles.F_GET_SEALS);
    says("F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW", MemoryFiles.SEALS);
    says("O_PATH", MemoryFiles.O_PATH);
    says("S_IFMT", MemoryFiles.FILE_TYPE);
    says("S_IFREG", MemoryFiles.REGULAR);
    says("TMPFS_MAGIC", MemoryFiles.TMPFS_MAGIC);
    says("KCMP_FILE", MemoryFiles.KCMP_FILE);
    says("SYS_kcmp", Libc.KCMP_NUMBER);
    says("O_NOCTTY", FileLocks.NOCTTY);
    says("O_NONBLOCK", UnixSockets.NONBLOCK);
    says("O_RDWR", FileLocks.READ_WRITE);
    says("O_CREAT", FileLocks.CREATE);
    says("O_NOFOLLOW", FileLocks.NOFOLLOW);
    says("O_CLOEXEC", UnixSockets.CLOEXEC);
    says("LOCK_EX", FileLocks.LOCK_EX);
    says("LOCK_NB", FileLocks.LOCK_NB);
    says("F_GETFD", FfmDescriptors.F_GETFD);
    says("F_DUPFD_CLOEXEC", FfmDescriptors.F_DUPFD_CLOEXEC);
    says("AF_UNIX", UnixAddress.FAMILY);
    says("SOCK_DGRAM", UnixSockets.DATAGRAM);
    says("SOCK_STREAM", UnixSockets.STREAM);
    says("SOCK_NONBLOCK", UnixSockets.NONBLOCK);
    says("SOCK_CLOEXEC", UnixSockets.CLOEXEC);
    says("SOL_SOCKET", UnixSockets.SOL_SOCKET);
    says("SO_PEERCRED", UnixSockets.SO_PEERCRED);
    says("SCM_RIGHTS", MessageHeader.SCM_RIGHTS);
    says("MSG_CTRUNC", MessageHeader.CTRUNC);
    says("MSG_DONTWAIT", SocketMessages.DONTWAIT);
    says("MSG_NOSIGNAL", SocketMessages.NOSIGNAL);
    says("MSG_CMSG_CLOEXEC", SocketMessages.CMSG_CLOEXEC);
    says("POLLIN", Deadline.READABLE);
    says("POLLOUT", Deadline.WRITABLE);
    says("POLLNVAL", Deadline.INVALID);
    compare();
  }

  @Test
  void errors_areThoseOfTheHeaders() throws Exception {
    says("EINTR", Errno.EINTR);
    says("ENOENT", Errno.ENOENT);
    says("ESRCH", Errno.ESRCH);
    says("EBADF", Errno.EBADF);
    says("EAGAIN", Errno.EAGAIN);
    says("EINVAL", Errno.EINVAL);
    says("EPROTOTYPE", Errno.EPROTOTYPE);
    says("EADDRINUSE", Errno.EADDRINUSE);
    says("ENOTCONN", Errno.ENOTCONN);
    says("ECONNABORTED", Errno.ECONNABORTED);
    says("ECONNRESET", Errno.ECONNRESET);
    says("ECONNREFUSED", Errno.ECONNREFUSED);
    compare();
  }

  @Test
  void structures_areThoseOfTheHeaders() throws Exception {
    says("offsetof(struct sockaddr_un, sun_path)", UnixAddress.PATH);
    says("sizeof(((struct sockaddr_un *)0)->sun_path)", UnixAddress.LONGEST_PATH + 1);
    says("offsetof(struct statfs, f_type)", 0);
    says("sizeof(((struct statfs *)0)->f_type)", Long.BYTES);
    says("sizeof(struct statfs)", MemoryFiles.STATFS_BYTES);
    says("offsetof(struct pollfd, events)", Deadline.EVENTS);
    says("offsetof(struct pollfd, revents)", Deadline.RETURNED_EVENTS);
    says("sizeof(struct pollfd)", Deadline.POLLFD_BYTES);
    says("offsetof(struct ucred, uid)", UnixSockets.UCRED_USER);
    says("sizeof(struct ucred)", UnixSockets.UCRED_BYTES);
    says("offsetof(struct msghdr, msg_iov)", MessageHeader.IOV);
    says("offsetof(struct msghdr, msg_iovlen)", MessageHeader.IOV_COUNT);
    says("offsetof(struct msghdr, msg_control)", MessageHeader.CONTROL);
    says("offsetof(struct msghdr, msg_controllen)", MessageHeader.CONTROL_BYTES);
    says("offsetof(struct msghdr, msg_flags)", MessageHeader.FLAGS);
    says("sizeof(struct msghdr)", MessageHeader.IOVEC);
    says("sizeof(struct iovec)", MessageHeader.CMSG - MessageHeader.IOVEC);
    says("offsetof(struct cmsghdr, cmsg_level)", MessageHeader.CMSG_LEVEL);
    says("offsetof(struct cmsghdr, cmsg_type)", MessageHeader.CMSG_TYPE);
    says("CMSG_LEN(0)", MessageHeader.CMSG_DATA);
    says("CMSG_SPACE(16 * sizeof(int))", MessageHeader.CMSG_SPACE);
    compare();
  }
}
