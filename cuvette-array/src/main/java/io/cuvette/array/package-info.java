/**
 * Arrays of elements on devices ({@link io.cuvette.array.CudaArray}) and in page-locked host memory
 * ({@link io.cuvette.array.HostArray}). {@link io.cuvette.array.CudaArrays} and {@link
 * io.cuvette.array.HostArrays} make them; {@link io.cuvette.array.NdArray} and {@link
 * io.cuvette.array.ArrayModule} are what both have in common, for programs that run on either.
 *
 * <p>What holds for all types of {@link io.cuvette} holds here: a {@code null} argument throws a
 * {@link NullPointerException} that names it, a closed object an {@link IllegalStateException}, and
 * arguments are checked before anything changes.
 */
@NullMarked
package io.cuvette.array;

import org.jspecify.annotations.NullMarked;
