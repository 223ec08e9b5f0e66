/** Contract tests: whole. */
@NullMarked
package io.cuvette.testkit.whole;

import org.jspecify.annotations.NullMarked;
