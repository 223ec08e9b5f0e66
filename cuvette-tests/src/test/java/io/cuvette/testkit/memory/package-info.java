/** Contract tests: memory. */
@NullMarked
package io.cuvette.testkit.memory;

import org.jspecify.annotations.NullMarked;
