package io.cuvette.instrument;

import io.cuvette.driver.AddedNode;
import io.cuvette.driver.AllocationProperties;
import io.cuvette.driver.BoxCopy;
import io.cuvette.driver.CaptureInfo;
import io.cuvette.driver.GraphMemAttribute;
import io.cuvette.driver.GraphNodeParams;
import io.cuvette.driver.GraphNodeType;
import io.cuvette.driver.GraphUpdateResult;
import io.cuvette.driver.InstantiatedGraph;
import io.cuvette.driver.KernelParameter;
import io.cuvette.driver.LaunchParameters;
import io.cuvette.driver.LaunchShape;
import io.cuvette.driver.MathLibrary;
import io.cuvette.driver.MatrixProduct;
import io.cuvette.driver.MatrixType;
import io.cuvette.driver.MemoryInfo;
import io.cuvette.driver.PoolProperties;
import io.cuvette.driver.PotentialBlockSize;
import io.cuvette.driver.PriorityRange;
import io.cuvette.driver.UserObject;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.OptionalInt;
import java.util.UUID;

/** Values of all types that calls of a driver take and give. */
final class Samples {
  private Samples() {}

  /** A value that has the number in it. */
  static Object of(Class<?> type, int number) {
    return switch (type.getSimpleName()) {
      case "int" -> number;
      case "long" -> (long) number;
      case "short" -> (short) number;
      case "byte" -> (byte) number;
      case "float" -> (float) number;
      case "boolean" -> true;
      case "String" -> "text " + number;
      case "UUID" -> new UUID(number, number);
      case "OptionalInt" -> OptionalInt.of(number);
      case "MemorySegment" -> MemorySegment.ofAddress(number);
      case "Arena" -> Arena.ofAuto();
      case "Runnable" -> (Runnable) () -> {};
      case "PriorityRange" -> new PriorityRange(0, -number);
      case "AllocationProperties" -> new AllocationProperties(number, number, number);
      case "PoolProperties" -> new PoolProperties(number, number, number, number, number);
      case "int[]" -> new int[] {number};
      case "byte[]" -> new byte[] {(byte) number};
      case "long[]" -> new long[] {number};
      case "KernelParameter" -> new KernelParameter(number, number);
      case "MatrixProduct" -> {
        MatrixProduct.Operand matrix = new MatrixProduct.Operand(false, number, number);
        yield new MatrixProduct(MatrixType.FLOAT, 1, 1, 1, matrix, matrix, matrix, 1);
      }
      case "BoxCopy" -> {
        BoxCopy.Side side = new BoxCopy.Side(number, number, number);
        yield new BoxCopy(side, side, number, 1, 1);
      }
      case "LaunchShape" -> new LaunchShape(number, 1, 1, 32, 1, 1, 1, 1, 1, number, false, false);
      case "LaunchParameters" -> new LaunchParameters(MemorySegment.ofAddress(number), List.of());
      case "PotentialBlockSize" -> new PotentialBlockSize(number, number);
      case "MemoryInfo" -> new MemoryInfo(number, number);
      case "CaptureInfo" -> new CaptureInfo(number, number, number);
      case "MathLibrary" -> MathLibrary.values()[number % MathLibrary.values().length];
      case "GraphNodeParams" -> new GraphNodeParams.Free(number);
      case "GraphNodeType" -> GraphNodeType.of(number % GraphNodeType.values().length);
      case "GraphMemAttribute" -> GraphMemAttribute.RESERVED_HIGH;
      case "InstantiatedGraph" -> new InstantiatedGraph(number, 0, 0);
      case "GraphUpdateResult" -> new GraphUpdateResult(number, 0, 0);
      case "AddedNode" -> AddedNode.plain(number);
      case "List" -> List.of(number);
      case "UserObject" -> new UserObject(number, () -> true);
      case "BlockListener" -> new QuietListener();
      default -> throw new IllegalArgumentException("no sample of " + type);
    };
  }
}
