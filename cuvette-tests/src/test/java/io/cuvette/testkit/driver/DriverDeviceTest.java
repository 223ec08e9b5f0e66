package io.cuvette.testkit.driver;

import io.cuvette.testkit.DriverDeviceContract;

class DriverDeviceTest extends DriverDeviceContract {}
