/**
 * Tests that run on the simulated device always and on a GPU when there is one: {@link
 * io.cuvette.testkit.CudaTest} is where to start. The contracts are suites for those who implement
 * a driver or an allocator.
 */
@NullMarked
package io.cuvette.testkit;

import org.jspecify.annotations.NullMarked;
