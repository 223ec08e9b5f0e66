package io.cuvette.testkit.kernel;

import static java.lang.classfile.ClassFile.ACC_ABSTRACT;
import static java.lang.classfile.ClassFile.ACC_INTERFACE;
import static java.lang.classfile.ClassFile.ACC_MANDATED;
import static java.lang.classfile.ClassFile.ACC_PUBLIC;
import static java.lang.constant.ConstantDescs.CD_void;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.cuvette.Cuda;
import io.cuvette.CudaKernel;
import io.cuvette.CudaModule;
import io.cuvette.CudaStream;
import io.cuvette.LaunchConfig;
import io.cuvette.testkit.CudaTest;
import io.cuvette.testkit.support.TestKernels;
import java.io.IOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.attribute.ModuleAttribute;
import java.lang.constant.ClassDesc;
import java.lang.constant.MethodTypeDesc;
import java.lang.constant.ModuleDesc;
import java.lang.module.Configuration;
import java.lang.module.ModuleFinder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.io.TempDir;

/** Public interfaces of a package that its module keeps to itself. */
class HiddenInterfaceTest {
  @TempDir private Path folder;

  /** A module with an interface that launches what takes no arguments. */
  private Class<?> hidden(boolean hasDefault) throws IOException, ClassNotFoundException {
    ClassDesc type = ClassDesc.of("hidden.inside.Launch");
    MethodTypeDesc launch =
        MethodTypeDesc.of(
            CD_void,
            CudaStream.class.describeConstable().orElseThrow(),
            LaunchConfig.class.describeConstable().orElseThrow());
    byte[] code =
        ClassFile.of()
            .build(
                type,
                made -> {
                  made.withFlags(ACC_PUBLIC | ACC_INTERFACE | ACC_ABSTRACT)
                      .withMethod("launch", launch, ACC_PUBLIC | ACC_ABSTRACT, _ -> {});
                  if (hasDefault) {
                    made.withMethodBody(
                        "more", MethodTypeDesc.of(CD_void), ACC_PUBLIC, body -> body.return_());
                  }
                });
    Path inside = Files.createDirectories(folder.resolve("hidden/inside"));
    Files.write(inside.resolve("Launch.class"), code);
    ClassFile.of()
        .buildModuleTo(
            folder.resolve("module-info.class"),
            ModuleAttribute.of(
                ModuleDesc.of("hidden"),
                made -> made.requires(ModuleDesc.of("java.base"), ACC_MANDATED, null)));
    Configuration configuration =
        ModuleLayer.boot()
            .configuration()
            .resolve(ModuleFinder.of(folder), ModuleFinder.of(), Set.of("hidden"));
    ModuleLayer.Controller layer =
        ModuleLayer.defineModulesWithOneLoader(
            configuration, List.of(ModuleLayer.boot()), CudaStream.class.getClassLoader());
    Module module = layer.layer().findModule("hidden").orElseThrow();
    layer.addReads(module, CudaStream.class.getModule());
    return module.getClassLoader().loadClass("hidden.inside.Launch");
  }

  @CudaTest
  void defaultMethodThatNobodyMayCall_isRefused(Cuda cuda) throws Exception {
    Class<?> type = hidden(true);
    assertThat(type.getModule().getName()).isEqualTo("hidden");
    try (CudaModule module = TestKernels.launches(cuda)) {
      CudaKernel kernel = module.kernel("doNothing");
      assertThatThrownBy(() -> kernel.bind(type))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageContaining("hidden.inside.Launch: has default methods");
    }
  }

  @CudaTest
  void interfaceWithoutOne_launches(Cuda cuda) throws Exception {
    Class<?> type = hidden(false);
    try (CudaModule module = TestKernels.launches(cuda)) {
      assertThat(module.kernel("doNothing").bind(type)).isInstanceOf(type);
    }
  }
}
