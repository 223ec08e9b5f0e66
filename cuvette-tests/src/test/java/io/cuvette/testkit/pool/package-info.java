/** Contract tests: pool. */
@NullMarked
package io.cuvette.testkit.pool;

import org.jspecify.annotations.NullMarked;
