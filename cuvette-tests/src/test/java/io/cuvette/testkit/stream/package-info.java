/** Contract tests: stream. */
@NullMarked
package io.cuvette.testkit.stream;

import org.jspecify.annotations.NullMarked;
