/** The driver, the devices and the optional libraries. */
@NullMarked
package io.cuvette.cli.info;

import org.jspecify.annotations.NullMarked;
