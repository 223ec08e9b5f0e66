package io.cuvette.internal.base;

import io.cuvette.driver.DescriptorCalls;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Whose number a user's number is. In a user namespace the system gives one number, the overflow
 * number, for everybody who has none there: it names nobody. Stateless.
 */
public final class Users {
  private static final Path OVERFLOW = Path.of("/proc/sys/kernel/overflowuid");
  private static final Path NUMBERS = Path.of("/proc/self/uid_map");
  private static final int USUAL_OVERFLOW = 65534;

  /** All numbers but −1, which is none. */
  private static final long ALL = (1L << 32) - 1;

  private Users() {}

  /**
   * The user of this process, whom no other has the number of.
   *
   * @throws SecurityException if the number is that of everybody without one
   */
  public static int own(DescriptorCalls calls) {
    return checked(calls.user(), overflow(OVERFLOW), numbers(NUMBERS));
  }

  /**
   * A user's number.
   *
   * @param overflow that of everybody without one
   * @param numbers those that the namespace has, as for {@link #isComplete}
   * @throws SecurityException if it may be that of everybody without one
   */
  public static int checked(int user, int overflow, List<String> numbers) {
    if (user == overflow && !isComplete(numbers)) {
      throw new SecurityException(
          "user: %d stands for all users without a number in this user namespace, this process's too"
                  .formatted(user)
              + " (expected: one that %s gives a number)".formatted(NUMBERS));
    }
    return user;
  }

  /** The overflow number that a file has; the usual one if it cannot be read. */
  public static int overflow(Path path) {
    try (BufferedReader file = Files.newBufferedReader(path)) { // which it gives in one piece
      return Integer.parseInt(String.valueOf(file.readLine()).strip());
    } catch (IOException | NumberFormatException e) {
      return USUAL_OVERFLOW;
    }
  }

  /** The lines of a file; none if it cannot be read. */
  public static List<String> numbers(Path path) {
    try {
      return Files.readAllLines(path);
    } catch (IOException e) {
      return List.of();
    }
  }

  /**
   * Whether every user has a number of its own.
   *
   * @param numbers lines of three numbers: the first one inside, the first one outside, how many
   */
  public static boolean isComplete(List<String> numbers) {
    return numbers.stream().mapToLong(Users::count).sum() == ALL;
  }

  private static long count(String line) {
    String[] fields = line.strip().split("\\s+", -1);
    return Long.parseLong(fields[fields.length - 1]);
  }
}
