/** Contract tests: device. */
@NullMarked
package io.cuvette.testkit.device;

import org.jspecify.annotations.NullMarked;
