/**
 * The driver of real GPUs: the NVIDIA driver library through the Foreign Function and Memory API.
 * It is found as a service; nothing here is called by name.
 */
@NullMarked
package io.cuvette.ffm;

import org.jspecify.annotations.NullMarked;
