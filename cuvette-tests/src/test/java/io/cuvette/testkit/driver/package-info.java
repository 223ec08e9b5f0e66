/** Contract tests: driver. */
@NullMarked
package io.cuvette.testkit.driver;

import org.jspecify.annotations.NullMarked;
